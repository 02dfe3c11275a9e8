"""What an attacker does with the copy of a held git config, and what the host makes of it afterwards (CASES.md A16, I1, I9)."""

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jail.hold import gitkeys, look, opening, store
from jail.hold.change import SETTINGS
from support.attempts import PRELUDE, warm_jail
from support.installed import Installed
from support.jails import PYTHON, Jail, git
from support.running import Running, until

HELD = "/run/jail/held"
COPY = f"{HELD}/f0/config"
CANARY = '[alias]\n\tx = !touch ran\n[remote "planted"]\n\turl = https://planted.example/x\n'


@pytest.fixture(scope="module")
def repository(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Jail:
    jail = warm_jail(installed, tmp_path_factory.mktemp("copy"))
    git(jail.workspace, "init", "-q", ".")
    git(jail.workspace, "commit", "-q", "--allow-empty", "-m", "one")
    return jail


FORMS = {
    "as it was": "pass",
    "a link to a file of the host": "os.unlink(copy); os.symlink(canary, copy)",
    "a link to the config itself": "os.unlink(copy); os.symlink(config, copy)",
    "a link to a device": "os.unlink(copy); os.symlink('/dev/zero', copy)",
    "a pipe": "os.unlink(copy); os.mkfifo(copy)",
    "a socket": "os.unlink(copy); os.chdir(folder); socket.socket(socket.AF_UNIX).bind('config')",
    "a folder": "os.unlink(copy); os.makedirs(copy + '/deep/er')",
    "a second name of another file": "keep(held + '/other', text); os.unlink(copy); os.link(held + '/other', copy)",
    "a sparse file of a terabyte": "os.truncate(copy, 1 << 40)",
    "closed": "os.chmod(copy, 0)",
    "closed with its folders": "os.chmod(copy, 0); os.chmod(folder, 0); os.chmod(held, 0)",
    "gone": "os.unlink(copy)",
    "gone with its folder": "shutil.rmtree(folder)",
    "gone with all folders": "shutil.rmtree(folder); keep(held + '/x', 'x')",
    "a folder that is a link": "shutil.rmtree(folder); os.symlink(os.path.dirname(canary), folder)",
    "a folder that is a file": "shutil.rmtree(folder); keep(folder, text)",
    "under names that no listing likes": "[keep(folder + '/' + name, text) for name in ('a\\nb', '-rf', '\\x1b[2J')]",
    "with a lock that is left": "keep(copy + '.lock', 'x')",
    "binary": "keep(copy, '\\0' * 100 + text)",
}
PROGRAM = """
import shutil
held, folder, copy, canary, config, text = sys.argv[1:7]
os.umask(0)
def form():
    {form}
attempt("form", form)
say()
"""


class Left(dict[str, Any]):
    """A run after which the copy has some form; `session` is its folder, `changes` what the host lists."""

    session: Path
    before: bytes


@pytest.fixture(scope="module", params=FORMS)
def left(request: pytest.FixtureRequest, repository: Jail) -> Left:
    canary = repository.workspace.parent / "canary" / "config"
    canary.parent.mkdir(exist_ok=True)
    canary.write_text(CANARY)
    config = repository.workspace / ".git/config"
    before = config.read_bytes()
    program = PRELUDE + PROGRAM.replace("{form}", FORMS[request.param])
    known = {*repository.sessions()}
    found = Left(repository.inside(program, HELD, f"{HELD}/f0", COPY, str(canary), str(config), CANARY))
    (found.session,) = {*repository.sessions()} - known
    found.before = before
    found["name"] = request.param
    return found


def test_each_form_can_be_made_inside(left: Left) -> None:
    assert left["form"] == "done"


def test_the_hosts_config_is_what_it_was(left: Left, repository: Jail) -> None:
    assert (repository.workspace / ".git/config").read_bytes() == left.before
    assert '"kind":"swept"' not in (left.session / "ledger.jsonl").read_text()


def test_the_host_lists_and_reads_it_without_following_or_waiting(left: Left) -> None:
    manifest = store.read_manifest(str(left.session))
    assert manifest is not None
    changes = list(look.changes(str(left.session), manifest))
    assert len(changes) <= 1
    for change in changes:
        try:
            fd = opening.open_new(str(left.session), manifest.held[0], "")
        except OSError:
            continue
        with os.fdopen(fd, "rb") as file:
            content = file.read(1 << 21)
        assert change.what == SETTINGS
        keys = gitkeys.compared(left.before, content)
        if left["name"] == "a second name of another file":
            assert [each.key for each in keys.offered] == ["remote.planted.url"]
            assert "alias.x" in keys.refused
        else:
            assert keys.offered == ()
            assert len(keys.refused) == 1
    if left["name"] in ("as it was", "with a lock that is left"):
        assert changes == []


def test_the_next_run_starts_from_the_hosts_config_again(left: Left, repository: Jail) -> None:
    done = repository.run("git", "config", "--list")
    assert done.returncode == 0, done.stderr
    assert "planted" not in done.stdout


def test_the_session_can_be_removed(left: Left, repository: Jail, tmp_path: Path) -> None:
    # The caches of this test run, which `jail gc` would remove too, are another worker's as well.
    alone = repository._replace(environment={**repository.environment, "XDG_CACHE_HOME": str(tmp_path)})
    done = alone.call("gc", "--keep", "0B", "--held")
    assert done.returncode == 0, done.stderr
    assert not left.session.exists()


# What the host does to the file meanwhile.

LOOP = r"""
config = sys.argv[1]
print("ready", flush=True)
while not os.path.exists("end"):
    create = os.O_CREAT if os.path.exists("create") else 0
    attempt("write", lambda: keep(config, "planted", os.O_WRONLY | os.O_NOFOLLOW | create))
    time.sleep(0.001)
say()
"""


def by_rename(config: Path) -> None:
    git(config.parent.parent, "config", "user.name", "Host")


def as_a_folder(config: Path) -> None:
    config.unlink()
    config.mkdir()


def as_a_link(config: Path) -> None:
    config.rename(config.with_name("real"))
    config.symlink_to("real")


def away_and_back(config: Path) -> None:
    config.rename(config.with_name("aside"))
    time.sleep(0.05)
    config.with_name("aside").replace(config)


MEANWHILE: dict[str, Callable[[Path], None]] = {
    "git config": by_rename,
    "a folder in its place": as_a_folder,
    "moved away and back": away_and_back,
}


@pytest.fixture
def workspace(installed: Installed, tmp_path: Path) -> Jail:
    """A repository, and a home in which one session is the only one."""
    jail = warm_jail(installed, tmp_path)
    git(jail.workspace, "init", "-q", ".")
    for session in jail.sessions():
        shutil.rmtree(session)
    return jail


@pytest.mark.parametrize("how", MEANWHILE)
def test_whatever_the_host_puts_in_its_place_is_covered_again(how: str, workspace: Jail) -> None:
    config = workspace.workspace / ".git/config"
    with Running(workspace, PYTHON, "-I", "-c", f"{PRELUDE}import time\n{LOOP}", str(config)) as running:
        assert running.line() == "ready"
        MEANWHILE[how](config)
        assert until(lambda: "restored" in {entry["kind"] for entry in workspace.ledger()}, 20)
        state = of(config)
        time.sleep(0.2)  # some hundred more attempts
        assert of(config) == state
        (workspace.workspace / "end").write_text("")
        out, _ = running.process.communicate(timeout=60)
    assert json.loads(out.splitlines()[-1])["write"] in ("ELOOP", "EROFS", "EISDIR")
    told = [entry["fields"] for entry in workspace.ledger() if entry["kind"] in ("lost", "restored")]
    assert {fields["path"] for fields in told} == {str(config)}


def test_a_link_that_the_host_puts_there_leads_no_write_anywhere(workspace: Jail) -> None:
    """Whoever made it: a link among git's files is moved away, unless it was covered first."""
    config = workspace.workspace / ".git/config"
    with Running(workspace, PYTHON, "-I", "-c", f"{PRELUDE}import time\n{LOOP}", str(config)) as running:
        assert running.line() == "ready"
        as_a_link(config)
        before = config.with_name("real").read_bytes()
        assert until(lambda: {"restored", "swept"} & {entry["kind"] for entry in workspace.ledger()}, 20)
        time.sleep(0.2)
        (workspace.workspace / "end").write_text("")
        out, _ = running.process.communicate(timeout=60)
    assert json.loads(out.splitlines()[-1])["write"] in ("ELOOP", "EROFS", "ENOENT")
    assert config.with_name("real").read_bytes() == before


def of(config: Path) -> tuple[int, bytes]:
    """Kind and content of what the host has there."""
    return os.lstat(config).st_mode, config.read_bytes() if config.is_file() else b""


def test_what_the_host_takes_away_for_good_is_swept_when_it_is_made_inside(workspace: Jail) -> None:
    config = workspace.workspace / ".git/config"
    with Running(workspace, PYTHON, "-I", "-c", f"{PRELUDE}import time\n{LOOP}", str(config)) as running:
        assert running.line() == "ready"
        config.unlink()
        assert until(lambda: "still absent" in str(workspace.ledger()), 20)
        (workspace.workspace / "create").write_text("")
        time.sleep(0.2)
        (workspace.workspace / "end").write_text("")
        assert running.wait() == 0, running.errors
    assert not config.exists()
    swept = [entry["fields"]["path"] for entry in workspace.ledger() if entry["kind"] == "swept"]
    assert set(swept) == {str(config)}
