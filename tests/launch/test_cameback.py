"""What came into a PATH folder while its tree was away: what shadows a command goes, the rest stays."""

import os
import time
from pathlib import Path

import pytest

from jail.launch.cameback import FOLDER, CameBack, said
from jail.launch.quarantine import KeptBack
from jail.plan.held import Held
from support.attempts import lay


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = Path(os.path.realpath(tmp_path))
    lay(home, {"usr/git": "", "usr/python3.11": "", "usr/pip3": "", "venv/bin/tool": ""})
    (home / "usr/python3").symlink_to("python3.11")
    monkeypatch.setenv("PATH", f"{home}/venv/bin:{home}/usr:relative:")
    return home


def back(home: Path, since: int = 0) -> CameBack:
    session = home / f"session-{time.monotonic_ns()}"
    session.mkdir()
    found = CameBack(str(session), since, KeptBack(1 << 20))
    found.things.append(Held("t0", "overlay", str(home / "venv"), "", "commands", (str(home / "venv/bin"),)))
    return found


def taken(found: CameBack, *, last: bool = False) -> list[str]:
    return [os.path.basename(path) for path, _ in found.take(last=last)]


def test_what_shadows_a_command_goes_into_the_session(home: Path) -> None:
    lay(home, {"venv/bin/git": "evil", "venv/bin/python": "evil", "venv/bin/pip": ""})
    (home / "venv/bin/python3").symlink_to(home / "venv/bin/tool")
    found = back(home)
    assert taken(found) == ["git", "pip", "python", "python3"]
    assert sorted(path.name for path in (home / "venv/bin").iterdir()) == ["tool"]
    assert len(list(home.glob(f"session-*/{FOLDER}/*"))) == 4


def test_links_to_the_program_that_is_shadowed_stay_and_so_does_what_is_older(home: Path) -> None:
    (home / "venv/bin/python").symlink_to("python3")
    (home / "venv/bin/python3").symlink_to(home / "usr/python3")
    (home / "venv/bin/git").symlink_to(home / "usr/python3")
    (home / "venv/bin/pip3").mkdir()
    assert taken(back(home)) == ["git"]
    lay(home, {"venv/bin/git": ""})
    assert taken(back(home, time.time_ns() + 10**9)) == []


def test_at_the_end_pip_may_be_the_hosts_and_is_told_by_name_and_a_folder_that_is_gone_is_passed_by(
    home: Path,
) -> None:
    lay(home, {"venv/bin/pip": "", "venv/bin/git": ""})
    found = back(home)
    became = dict(found.take(last=True))
    said_of = {os.path.basename(path): said(path, each) for path, each in became.items()}
    assert said_of["git"].endswith(f"moved {FOLDER}/0001-git")
    assert said_of["pip"].endswith("look at it before you run it")
    assert (home / "venv/bin/pip").exists()
    os.rename(home / "venv", home / "gone")
    assert taken(found, last=True) == []


def test_a_run_in_which_nothing_came_back_looks_nowhere(home: Path) -> None:
    assert taken(CameBack(str(home), 0, KeptBack(0)), last=True) == []
    assert not (home / FOLDER).exists()
