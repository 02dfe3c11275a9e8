"""What is planted where a shell of the host looks for commands never runs there (A16, CASES.md agent rows 4, 10).

Rule: each case plants with the means of its ways, once inside and once without walls; afterwards a shell of the host, with the same
PATH and in the same folder, runs commands that exist. Inside: nothing that was planted has run. The control: it has.
"""

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import pytest

from support.attempts import lay, warm_jail
from support.installed import Installed
from support.jails import Jail
from support.running import Running

PLANT: Final = r"""
plant() { mkdir -p "$1"; for name in git ls tool; do rm -f "$1/$name"; printf '#!/bin/sh\necho "$0" >> "%s/ran"\n' "$MARK" > "$1/$name"; chmod 755 "$1/$name"; done; }
"""
AFTERWARDS: Final = "git --version; ls; tool"
VENV: Final = {"pyvenv.cfg": "home = /usr/bin\n", "bin/tool": "#!/bin/sh\n"}


class Case(NamedTuple):
    """`path`: PATH before the system's, with WS for the workspace and HOME; `files`, `links`: what is there; `plant`: shell; `folder`:
    where the person stands; `options` of the run.
    """

    path: str
    plant: str
    files: Mapping[str, str] = MappingProxyType({})
    links: Mapping[str, str] = MappingProxyType({})
    folder: str = "WS"
    options: tuple[str, ...] = ()


def venv(folder: str) -> dict[str, str]:
    return {f"{folder}/{name}": text for name, text in VENV.items()}


CASES: Final = {
    "an environment": Case("WS/.venv/bin", "plant .venv/bin", venv("WS/.venv")),
    "an environment behind a link of the workspace": Case(
        "WS/.venv/bin", "rm .venv; plant .venv/bin", venv("WS/real"), {"WS/.venv": "real"}
    ),
    "the same, the link moved away": Case(
        "WS/.venv/bin", "mv .venv x; plant .venv/bin", venv("WS/real"), {"WS/.venv": "real"}
    ),
    "the same, the link replaced": Case(
        "WS/.venv/bin", "plant evil/bin; ln -sfn evil .venv", venv("WS/real"), {"WS/.venv": "real"}
    ),
    "an environment outside, behind a link of the workspace": Case(
        "WS/.venv/bin", "rm .venv; plant .venv/bin", venv("HOME/venvs/x"), {"WS/.venv": "HOME/venvs/x"}
    ),
    "an environment in a written tree, behind a link of the workspace": Case(
        "WS/.venv/bin",
        "plant ~/venvs/x/bin; rm .venv; plant .venv/bin",
        venv("HOME/venvs/x"),
        {"WS/.venv": "HOME/venvs/x"},
        options=("--write", "HOME/venvs"),
    ),
    "a chain of links": Case(
        "WS/.venv/bin", "rm env; plant env/bin", venv("WS/real"), {"WS/.venv": "env", "WS/env": "real"}
    ),
    "a link in an environment": Case(
        "WS/.venv/bin",
        "rm .venv/bin; plant .venv/bin",
        {"WS/.venv/pyvenv.cfg": "", "WS/.venv/bin2/x": ""},
        {"WS/.venv/bin": "bin2"},
    ),
    "a link of the person that leads through one of the workspace": Case(
        "HOME/bin", "rm .venv; plant .venv/bin", venv("WS/real"), {"WS/.venv": "real", "HOME/bin": "WS/.venv/bin"}
    ),
    "a link that leads nowhere": Case("WS/.venv/bin", "plant bin2", {"WS/.venv/x": ""}, {"WS/.venv/bin": "../bin2"}),
    "a folder that dots come out of": Case(
        "WS/scripts/../bin",
        "plant evil/bin; mkdir evil/x; mv scripts s; ln -s evil/x scripts",
        {"WS/scripts/x": "", "WS/bin/x": ""},
    ),
    "a folder that dots come out of and that is not there": Case(
        "WS/scripts/../bin", "plant evil/bin; mkdir evil/x; ln -s evil/x scripts", {"WS/bin/x": ""}
    ),
    "a file": Case("WS/bin", "rm bin; plant bin", {"WS/bin": "a file\n"}),
    "nothing": Case("WS/bin", "plant bin", {"WS/x": ""}),
    "nothing in a written tree": Case("HOME/w/bin", "plant ~/w/bin", {"HOME/w/x": ""}, options=("--write", "HOME/w")),
    "a written tree": Case("HOME/w", "plant ~/w", {"HOME/w/x": ""}, options=("--write", "HOME/w")),
    "a folder in a written tree": Case("HOME/w/bin", "plant ~/w/bin", {"HOME/w/bin/x": ""}, options=("--write", "HOME/w")),
    "a written tree that lies in a held workspace": Case(
        "WS/bin", "plant bin", {"WS/bin/x": ""}, options=("--hold", "--write", "WS/bin")
    ),
    "a relative entry": Case("node_modules/.bin", "plant node_modules/.bin", {"WS/node_modules/.bin/x": ""}),
    "a relative entry that is not there": Case("./bin", "plant bin", {"WS/x": ""}),
    "a relative entry from a folder of the workspace": Case(
        "bin", "plant $MARK/../workspace/web/bin", {"WS/web/bin/x": ""}, folder="WS/web"
    ),
    "a relative entry behind a link": Case("bin", "rm bin; plant bin", {"WS/real/x": ""}, {"WS/bin": "real"}),
    "a tilde": Case("~/w/bin", "plant ~/w/bin", {"HOME/w/bin/x": ""}, options=("--write", "HOME/w")),
    "the folder where the person is": Case(".", "plant .", {"WS/x": ""}),
    "the same, as an empty entry": Case("", "plant .", {"WS/x": ""}),
    "the same, further down": Case(".", "plant web", {"WS/web/x": ""}, folder="WS/web"),
    "the workspace": Case("WS", "plant .", {"WS/x": ""}),
    "the workspace, by a link": Case(
        "WS", "plant evil; ln -s evil/git git; ln -s evil/ls ls", {"WS/x": ""}
    ),
    "the workspace, bits that come later": Case(
        "WS", "plant evil; cp evil/git evil/ls .; chmod 644 git ls; sleep 0.1; chmod 755 git ls", {"WS/x": ""}
    ),
}  # fmt: skip


@pytest.fixture
def warm(installed: Installed, tmp_path: Path) -> Jail:
    return warm_jail(installed, tmp_path)


def whole(text: str, jail: Jail) -> str:
    return text.replace("WS", str(jail.workspace)).replace("HOME", str(jail.home))


def laid(case: Case, jail: Jail) -> Jail:
    """The jail with what the case needs, and its PATH."""
    lay(Path("/"), {whole(path, jail).lstrip("/"): text for path, text in case.files.items()})
    for path, target in case.links.items():
        os.symlink(whole(target, jail), whole(path, jail))
    path = f"{whole(case.path, jail)}:/usr/bin:/bin"
    return jail._replace(environment={**jail.environment, "PATH": path, "MARK": str(jail.home)})


def ran(case: Case, jail: Jail) -> list[str]:
    """What a shell of the host runs of it afterwards. The tool that shadows nothing may be what the command made."""
    subprocess.run(
        ["/bin/bash", "-c", AFTERWARDS],
        cwd=whole(case.folder, jail),
        env=dict(jail.environment),
        capture_output=True,
        check=False,
        timeout=60,
    )
    mark = jail.home / "ran"
    names = mark.read_text().split() if mark.exists() else []
    return [name for name in names if not name.endswith("/tool")]


def planted(case: Case, jail: Jail, *options: str) -> None:
    done = jail.run(
        "sh",
        "-c",
        f"MARK={jail.home}; cd {jail.workspace}; {PLANT}{case.plant}; true",
        options=[*(whole(each, jail) for each in case.options), *options],
        cwd=Path(whole(case.folder, jail)),
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", CASES)
def test_what_is_planted_inside_does_not_run_on_the_host(name: str, warm: Jail) -> None:
    case = CASES[name]
    jail = laid(case, warm)
    planted(case, jail, *(() if case.folder == "WS" else ("--workspace", str(jail.workspace))))
    assert ran(case, jail) == []


@pytest.mark.parametrize("name", CASES)
def test_the_control_runs_what_was_planted_without_walls(name: str, warm: Jail) -> None:
    case = CASES[name]
    jail = laid(case, warm)
    subprocess.run(
        ["/bin/sh", "-c", f"MARK={jail.home}; {PLANT}{case.plant}"],
        cwd=jail.workspace,
        env={**jail.environment, "PATH": "/usr/bin:/bin"},
        check=True,
        timeout=60,
    )
    assert len(ran(case, jail)) == 2


@pytest.mark.parametrize("name", [name for name in CASES if "--hold" not in CASES[name].options])
def test_what_is_planted_in_a_held_workspace_does_not_run_once_it_is_applied(name: str, warm: Jail) -> None:
    case = CASES[name]
    jail = laid(case, warm)
    planted(case, jail, "--hold", *(() if case.folder == "WS" else ("--workspace", str(jail.workspace))))
    jail.call("apply")
    assert ran(case, jail) == []


@pytest.mark.parametrize("options", [(), ("--hold",)])
def test_a_command_that_was_there_is_not_replaced_and_a_python_where_there_is_python3_waits(
    options: tuple[str, ...], warm: Jail
) -> None:
    case = Case("WS/.venv/bin", "", {**venv("WS/.venv"), "WS/.venv/bin/black": "old\n"})
    jail = laid(case, warm)
    evil = jail.home / "ran"
    plant = "cd .venv/bin; for name in python pip black; do ln -sfn ../../evil $name; done; cp /bin/true new"
    planted(case._replace(plant=plant), jail, *options)
    if options:
        jail.call("apply")
    names = sorted(path.name for path in (jail.workspace / ".venv/bin").iterdir())
    assert names == ["black", "new", "tool"], "the control: what is new and shadows nothing comes"
    assert (jail.workspace / ".venv/bin/black").read_text() == "old\n"
    assert not evil.exists()
    told = jail.call("changes").stdout
    assert "a command that you have already, changed" in told
    assert "shadows /usr/bin/python3" in told


RACE: Final = r"""
import os, time
print("ready", flush=True)
def plant(folder):
    for name in ("git", "ls", "python3"):
        with open(f"{folder}/.{name}", "w") as file:
            file.write(f'#!/bin/sh\necho "$0" >> "{MARK}/ran"\n')
        os.chmod(f"{folder}/.{name}", 0o755)
        os.rename(f"{folder}/.{name}", f"{folder}/{name}")
while not os.path.exists("stop"):
    for folder in (".venv/bin", "spare/bin"):
        try:
            os.makedirs(folder, exist_ok=True)
            plant(folder)
        except OSError:
            pass
    # What takes the name while the tree is away, whole.
    try:
        os.rename("spare", ".venv")
    except OSError:
        pass
"""


def test_a16_what_takes_the_place_of_an_environment_while_the_host_makes_it_again_does_not_run(
    warm: Jail,
) -> None:
    case = Case("WS/.venv/bin", "", venv("WS/.venv"))
    jail = laid(case, warm)
    real = jail.workspace / ".venv"
    with Running(jail, "/usr/bin/python3", "-I", "-c", f"MARK={str(jail.home)!r}\n{RACE}") as running:
        running.ready()
        for _ in range(5):
            subprocess.run(["rm", "-rf", real], check=False, capture_output=True, timeout=60)
            done = subprocess.run(
                ["/usr/bin/python3", "-m", "venv", "--without-pip", real],
                check=False,
                capture_output=True,
                text=True,
                timeout=60,
            )
            time.sleep(0.2)
        (jail.workspace / "stop").touch()
        assert running.wait() == 0, running.errors
    assert done.returncode == 0, done.stderr
    assert ran(case, jail) == []
    assert (real / "bin/python3").is_symlink()
    took = [entry["fields"]["path"] for entry in jail.ledger() if entry["kind"] == "swept"]
    assert str(real / "bin/git") in took
    assert f"{real}/bin/git: made while its tree was away" in running.errors
