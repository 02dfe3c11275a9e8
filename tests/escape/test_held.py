"""CASES.md A15, A16, A17, A19, A21, A22 on held trees: whatever is done inside, the host's tree is as it was.

Rule: one run tries everything, once on an overlay and once on a copy, over a tree in which an earlier run has
left notes for overlayfs; the control makes the same attempts on an equal tree without walls.
"""

import json
import os
import stat
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from support.attempts import DONE, GONE, PRELUDE, REFUSED, lay, offences, state_of, warm_jail
from support.copying import by_copies
from support.installed import Installed
from support.jails import Jail, git

OWNER: Final = 1234
KINDS: Final = ("overlay", "copy")
NOTES: Final = {
    "d/opaque": "user.overlay.opaque",
    "d/elsewhere": "user.overlay.redirect",
    "d/metacopy": "user.overlay.metacopy",
}
"""What would mislead an overlay, on things of the lower layer."""

PROGRAM: Final = r"""
import shutil
secret = sys.argv[1]
def forge(path, name, value=b"y"):
    os.setxattr(path, name, value)
def replace(path, text):
    os.unlink(path)
    keep(path, text)
attempt("write", lambda: keep("file", "evil", os.O_WRONLY | os.O_APPEND))
attempt("truncate", lambda: os.truncate("data", 1))
attempt("chmod", lambda: os.chmod("tool", 0o777))
attempt("touch", lambda: os.utime("old", (1, 1)))
attempt("replace", lambda: replace("other", "evil"))
attempt("delete", lambda: os.unlink("gone"))
attempt("delete a folder", lambda: shutil.rmtree("tree"))
attempt("make it again", lambda: os.mkdir("tree"))
found["the new one"] = os.listdir("tree")
attempt("rename", lambda: os.rename("moved", "d/moved"))
attempt("link", lambda: os.link("linked", "second"))
attempt("symlink", lambda: os.symlink("/etc", "way"))
attempt("fifo", lambda: os.mkfifo("fifo"))
attempt("socket", lambda: socket.socket(socket.AF_UNIX).bind("sock"))
attempt("map", lambda: keep("d/map", "evil", os.O_RDWR))
attempt("A15 hooks", lambda: keep(".git/hooks/post-checkout", "evil"))
attempt("A15 move .git", lambda: shutil.move(".git", "git"))
attempt("A15 another .git", lambda: (
    shutil.rmtree(".git/hooks", ignore_errors=True), os.makedirs(".git/hooks"), keep(".git/hooks/post-merge", "evil")))
attempt("A17 memory", lambda: keep("CLAUDE.md", "evil"))
attempt("A17 settings", lambda: (os.mkdir(".claude"), keep(".claude/settings.json", "{}")))
attempt("protected", lambda: keep("RESEARCH.md", "evil", os.O_WRONLY))
attempt("move protected", lambda: os.rename("RESEARCH.md", "r"))
for path in (secret, f"/proc/1/root{secret}", f"/proc/self/root{secret}", f"/proc/self/cwd/../{os.path.relpath(secret)}"):
    attempt(f"A19 {path}", lambda: os.close(os.open(path, os.O_RDONLY)))
for fd in os.listdir("/proc/self/fd"):
    attempt(f"A19 fd {fd}", lambda: os.close(os.open(f"/proc/self/fd/{fd}/../upper", os.O_RDONLY)))
found["mounts"] = content("/proc/self/mountinfo")
attempt("A21 whiteout", lambda: os.mknod("wh", stat.S_IFCHR | 0o600, 0))
attempt("A21 whiteout over a name", lambda: call("renameat2", AT_FDCWD, b"d/w", AT_FDCWD, b"d/w2", 4))
for name in ("user.overlay.opaque", "trusted.overlay.opaque", "user.overlay.whiteouts", "user.overlay.redirect"):
    attempt(f"A21 {name} on a folder", lambda: forge("forged", name))
    attempt(f"A21 {name} on a file", lambda: forge("forged/file", name, b"/secret"))
os.mkdir("mine")
attempt("A21 on a new folder", lambda: forge("mine", "user.overlay.opaque"))
found["forged"] = sorted(os.listdir("forged"))
found["noted"] = {}
for path in sys.argv[2:]:
    try:
        found["noted"][path] = sorted(os.listdir(path)) if os.path.isdir(path) else content(path)
    except OSError as error:
        found["noted"][path] = errno.errorcode[error.errno]
attempt("A22 setuid", lambda: os.chmod("tool", 0o4755))
attempt("A22 setuid on a new file", lambda: os.close(os.open("su", os.O_CREAT | os.O_WRONLY, 0o4755)))
attempt("A22 setgid", lambda: os.chmod("d", 0o2777))
os.chmod(".", 0o700)
say()
"""
WORK: Final = (
    "write", "truncate", "chmod", "touch", "replace", "delete", "delete a folder", "make it again", "rename",
    "link", "symlink", "fifo", "socket", "map", "A15 hooks", "A15 another .git", "A17 memory", "A17 settings",
)  # fmt: skip
"""What works inside, and is held."""
MOVED: Final = {"overlay": "EBUSY", "copy": DONE}
"""What a move of `.git`, as mv(1) does it, meets: in an overlay git's objects are a mount of their own."""


def make_tree(folder: Path) -> None:
    """A workspace with something for each attempt."""
    git(folder, "init", "-q")
    names = "file data old other gone moved linked d/map d/w tree/a/b forged/file forged/more RESEARCH.md"
    lay(
        folder,
        {name: f"{name}\n" for name in (*names.split(), "d/opaque/shown", "d/elsewhere/shown", "d/metacopy")},
    )
    lay(folder, {"tool": "#!/bin/sh\n"})
    (folder / "tool").chmod(0o755)
    for path, name in NOTES.items():
        os.setxattr(folder / path, name, b"y" if name.endswith("opaque") else b"/secret")


class Tried(NamedTuple):
    """One run: what was met inside, and the host's tree before and after it."""

    jail: Jail
    kind: str
    found: dict[str, Any]
    before: dict[str, tuple[object, ...]]
    after: dict[str, tuple[object, ...]]
    session: Path

    @property
    def layer(self) -> Path:
        """Where the session has what was written."""
        return self.session / "held/t0" / ("upper" if self.kind == "overlay" else "tree")


def tried(jail: Jail, kind: str) -> Tried:
    before = state_of(jail.workspace)
    found = jail.inside(PRELUDE + PROGRAM, str(jail.home / ".local/state/jail"), *NOTES, options=["--hold"])
    return Tried(jail, kind, found, before, state_of(jail.workspace), jail.sessions()[-1])


@pytest.fixture(scope="module", params=KINDS)
def run(
    request: pytest.FixtureRequest, installed: Installed, tmp_path_factory: pytest.TempPathFactory
) -> Tried:
    jail = warm_jail(installed, tmp_path_factory.mktemp("held"))
    make_tree(jail.workspace)
    return tried(by_copies(jail) if request.param == "copy" else jail, request.param)


@pytest.fixture(scope="module")
def control(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Tried:
    """The same without walls."""
    jail = warm_jail(installed, tmp_path_factory.mktemp("control"))
    make_tree(jail.workspace)
    (jail.home / "secret").write_text("")
    before = state_of(jail.workspace)
    found = jail.outside(PRELUDE + PROGRAM, str(jail.home / "secret"), *NOTES)
    return Tried(jail, "none", found, before, state_of(jail.workspace), jail.home)


def test_the_control_changes_the_tree_and_reaches_everything(control: Tried) -> None:
    met = control.found
    assert offences({name: met[name] for name in WORK}, frozenset((DONE,))) == {}
    assert {name for name in met if name.startswith("A19 /") and met[name] == DONE}
    for name in (
        "A15 move .git",
        "protected",
        "A21 whiteout",
        "A21 user.overlay.opaque on a folder",
        "A22 setuid",
        "A22 setgid",
    ):
        assert met[name] == DONE, name
    assert len([path for path in control.before if control.before[path] != control.after.get(path)]) > 10


def test_the_host_has_its_tree_bit_for_bit_and_the_session_what_was_written(run: Tried) -> None:
    assert offences({name: run.found[name] for name in WORK}, frozenset((DONE,))) == {}
    assert run.found["A15 move .git"] == MOVED[run.kind]
    assert run.after == run.before
    assert (run.layer / "file").read_text() == "file\nevil"
    assert (run.layer / "CLAUDE.md").read_text() == "evil"
    assert run.found["the new one"] == []


def test_a_protected_name_stays_read_only_in_a_held_workspace(run: Tried) -> None:
    assert run.found["protected"] in REFUSED
    assert run.found["move protected"] in REFUSED


def test_a19_nothing_inside_can_name_the_layers(run: Tried) -> None:
    met = {name: met for name, met in run.found.items() if name.startswith("A19")}
    assert len(met) >= 4
    assert offences(met, GONE | {"EACCES"}) == {}
    if run.kind == "overlay":
        rows = [row for row in run.found["mounts"].splitlines() if " overlay " in row]
        assert rows
        assert not [
            row for row in rows if str(run.session.parent) in row or "lowerdir=/proc/self/fd/" not in row
        ]


def test_a21_what_an_overlay_would_obey_cannot_be_forged(run: Tried) -> None:
    assert run.found["A21 whiteout"] in REFUSED
    assert run.found["A21 whiteout over a name"] in {*REFUSED, "EINVAL"}
    assert run.found["forged"] == ["file", "more"]
    if run.kind == "overlay":
        for path in ("forged", "forged/file", "mine"):
            names = os.listxattr(run.layer / path) if (run.layer / path).exists() else []
            assert not {"user.overlay.opaque", "user.overlay.redirect"} & set(names), path


def test_a21_notes_in_the_lower_layer_lead_nowhere(run: Tried) -> None:
    shown = run.found["noted"]
    assert shown["d/opaque"] == ["shown"]
    assert shown["d/elsewhere"] == ["shown"]
    assert shown["d/metacopy"] in ("d/metacopy\n", "EPERM", "EIO")


def test_a22_no_bit_gives_anybody_rights(run: Tried) -> None:
    assert offences({name: run.found[name] for name in run.found if name.startswith("A22")}, REFUSED) == {}
    kept = [path for path in run.layer.rglob("*") if not path.is_symlink()]
    assert len(kept) > 10
    assert not [path for path in kept if path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)]


def test_the_ledger_says_that_the_tree_was_held(run: Tried) -> None:
    entries = [json.loads(line) for line in (run.session / "ledger.jsonl").read_text().splitlines()]
    (probes,) = [entry["fields"]["results"] for entry in entries if entry["kind"] == "probes"]
    assert probes[f"held: {run.jail.workspace}"] == [True, run.kind]
    (start,) = [entry["fields"]["plan"] for entry in entries if entry["kind"] == "start"]
    assert "\nheld " in start
    assert not [path.name for path in run.session.parent.iterdir() if path.name.startswith(".new-")]


@pytest.mark.root
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("owner", [0, OWNER])
def test_started_by_root_the_tree_is_held_just_so(
    installed: Installed, tmp_path: Path, owner: int, kind: str
) -> None:
    """Root's own workspace is held over an idmapped mount, somebody's as its owner."""
    jail = warm_jail(installed, tmp_path)
    make_tree(jail.workspace)
    for path in (jail.workspace, *jail.workspace.rglob("*")):
        os.chown(path, owner, owner, follow_symlinks=False)
    done = tried(by_copies(jail) if kind == "copy" else jail, kind)
    assert offences({name: done.found[name] for name in WORK}, frozenset((DONE,))) == {}
    assert done.found["A15 move .git"] == MOVED[kind]
    assert done.after == done.before
    assert done.found["protected"] in REFUSED
    assert done.found["A21 whiteout"] in REFUSED
    assert (done.layer / "CLAUDE.md").stat().st_uid != 0
