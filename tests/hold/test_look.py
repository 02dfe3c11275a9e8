"""What changed in held things: the same acts give the same list over an overlay and in a copy."""

import os
import socket
import stat
import time
from contextlib import suppress
from pathlib import Path

import pytest

from jail.errors import JailError
from jail.hold import base, look, opening
from jail.hold.change import ABSENT, State
from jail.plan.held import COPY, OVERLAY
from support.looking import OLD, digest, found, held, told, write

TREES = pytest.mark.parametrize("kind", [OVERLAY, COPY])


def long_ago(path: str) -> str:
    return f"touch -h -d @{OLD // 10**9} {path}"


SCENARIOS: dict[str, tuple[str, list[str]]] = {
    "nothing": ("cat alpha; ls -R >/dev/null", []),
    "an added file, folder and link": (
        "echo x >new; mkdir n; ln -s nowhere n/l; : >n/empty",
        ["A n", "A n/empty", "A n/l", "A new"],
    ),
    "a changed content": ("echo x >>alpha; echo ALPHA >beta", ["M alpha", "M beta"]),
    "the same size and time with another content": (
        f"printf 'ALPHA\\n' >alpha; {long_ago('alpha')}",
        ["M alpha"],
    ),
    "written with what it had": (f"printf 'alpha\\n' >alpha; {long_ago('alpha')}", []),
    "opened for writing and nothing written": (": >>alpha; : >>empty", []),
    "a time alone": ("touch alpha; touch d; touch -h link", ["t alpha"]),
    "bits alone": ("chmod 600 alpha; chmod 700 d; chmod u+s run", ["m alpha", "m d", "m run"]),
    "bits of the tree itself": ("chmod 700 .", ["m "]),
    "everything closed": ("echo x >alpha; chmod 0 d .", ["m ", "M alpha", "m d"]),
    "bits and content": ("chmod 600 alpha; echo x >alpha", ["M alpha"]),
    "content of an empty file": ("echo x >empty", ["M empty"]),
    "emptied": (": >alpha", ["M alpha"]),
    "deleted": ("rm alpha link empty", ["D alpha", "D empty", "D link"]),
    "deleted and made again": (f"rm alpha; printf 'alpha\\n' >alpha; {long_ago('alpha')}", []),
    "a folder deleted": ("rm -r d", ["D d", "D d/one", "D d/sub", "D d/sub/three", "D d/two"]),
    "a folder emptied": ("rm -r d/*", ["D d/one", "D d/sub", "D d/sub/three", "D d/two"]),
    "a folder deleted and made again": (
        "rm -r d; mkdir d; chmod 755 d; echo x >d/new; mkdir d/sub; chmod 755 d/sub",
        ["A d/new", "D d/one", "D d/sub/three", "D d/two"],
    ),
    "a folder made again by the one that was moved in": (
        "rm -r d; mkdir n; chmod 755 n; echo x >n/one; mv n d",
        ["M d/one", "D d/sub", "D d/sub/three", "D d/two"],
    ),
    "a file becomes a folder": ("rm alpha; mkdir alpha; echo x >alpha/x", ["T alpha", "A alpha/x"]),
    "a file becomes a link": ("rm alpha; ln -s beta alpha", ["T alpha"]),
    "a folder becomes a file": (
        "rm -r d; echo x >d",
        ["T d", "D d/one", "D d/sub", "D d/sub/three", "D d/two"],
    ),
    "a folder becomes a link": (
        "rm -r d; ln -s e d",
        ["T d", "D d/one", "D d/sub", "D d/sub/three", "D d/two"],
    ),
    "a link becomes a folder": ("rm link; mkdir link; echo x >link/x", ["T link", "A link/x"]),
    "a link becomes a file": ("cp alpha link.new; mv link.new link", ["T link"]),
    "a link leads elsewhere": ("ln -sfn beta link", ["M link"]),
    "a file renamed": ("mv alpha omega", ["R alpha > omega"]),
    "a file renamed over another": ("mv alpha beta", ["D alpha", "M beta"]),
    "an empty file renamed": ("mv empty omega", ["D empty", "A omega"]),
    "a link renamed": ("mv link omega", ["D link", "A omega"]),
    "renamed, closed and changed in time": ("mv alpha omega; chmod 600 omega; touch omega", ["R alpha > omega"]),
    "renamed and copied": ("cp -p alpha psi; mv alpha omega", ["R alpha > omega", "A psi"]),
    "a file of the same last name is the one that moved": (
        "mkdir n; cp alpha n/a; mv alpha n/alpha; mv beta n/z",
        ["A n", "A n/a", "R alpha > n/alpha", "R beta > n/z"],
    ),
    "a folder moved": (
        "mv d m 2>/dev/null || { cp -a d m; rm -r d; }",
        ["D d", "D d/sub", "A m", "R d/one > m/one", "A m/sub", "R d/sub/three > m/sub/three", "R d/two > m/two"],
    ),
    "two files changed places": ("mv alpha x; mv beta alpha; mv x beta", ["M alpha", "M beta"]),
    "one name of two written": ("echo x >>hard", ["M hard"]),
    "a new name for a file": ("ln beta beta2 || cp -p beta beta2; rm hard2", ["A beta2", "D hard2"]),
    "two new names of one file": ("echo x >n; ln n n2", ["A n", "A n2"]),
    "without any bits": (
        "mkdir -p n/in; echo x >n/in/f; chmod 0 n/in/f n/in n alpha d",
        ["m alpha", "m d", "A n", "A n/in", "A n/in/f"],
    ),
    "odd names": (
        "mv \"$(printf '\\377\\376')\" \"$(printf '\\375')\"; echo x >\"$(printf 'a\\nb')\"; echo y >./-rf",
        ["A -rf", "A a\nb", "R \udcff\udcfe > \udcfd"],
    ),
    "special files": ("mkfifo p; rm beta; mkfifo beta", ["T beta", "A p"]),
    "the config of a git dir, and another": ("echo x >>g/config; echo x >>e/config", ["M e/config", "S g/config"]),
    "a folder that becomes a git dir around a config": (
        "cd e; echo x >>config; mkdir objects refs; echo ref >HEAD",
        ["A e/HEAD", "S e/config", "A e/objects", "A e/refs"],
    ),
    "bytes of a path give the order": ("mkdir n n-a; echo 1 >n/z; echo 2 >n-a/a", ["A n", "A n-a", "A n-a/a", "A n/z"]),
}  # fmt: skip


@TREES
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_what_was_done_is_what_is_listed(tmp_path: Path, kind: str, scenario: str) -> None:
    act, expected = SCENARIOS[scenario]
    session = held(tmp_path, kind)
    session.run(act)
    assert told(found(session)) == expected


@TREES
def test_without_a_whole_base_all_is_a_conflict_but_what_the_host_has(tmp_path: Path, kind: str) -> None:
    session = held(tmp_path, kind)
    session.run(
        "echo x >alpha; chmod 600 run; touch beta; rm -r d; mkdir d; chmod 755 d; echo y >d/new; rm -r s link;"
        " mkdir n; echo z >n/z; : >>empty"
    )
    Path(session.base_file).unlink()
    assert [line.removesuffix(f": {look.NOT_WHOLE}") for line in told(found(session))] == [
        "M alpha", "A d/new", "D d/one", "D d/sub", "D d/sub/three", "D d/two", "D link", "A n",
        "A n/z", "m run", "D s", "D s/in",
    ]  # fmt: skip
    assert all(each.conflict == look.NOT_WHOLE for each in found(session))
    assert {each.old.kind for each in found(session)} == {"unknown"}


@TREES
def test_what_changed_while_the_run_began_has_no_base(tmp_path: Path, kind: str) -> None:
    session = held(tmp_path, kind, snapshot=False)
    time.sleep(0.02)
    write(session.tree / "alpha", "late\n")
    write(session.tree / "beta", "late\n")
    session.snapshot()
    session.run("echo x >alpha; rm beta; echo y >run")
    assert told(found(session)) == [f"M alpha: {look.BEGAN}", f"D beta: {look.BEGAN}", "M run"]


def test_states_are_those_of_the_three_times(tmp_path: Path) -> None:
    session = held(tmp_path, OVERLAY)
    session.run("echo new! >alpha; chmod 4755 alpha; ln -sfn beta link; rm -r s; mv beta omega")
    changes = {each.path: each for each in found(session)}
    alpha = changes["alpha"]
    assert alpha.tree == "t0"
    assert alpha.old == State("file", 0o644, 6, OLD, digest("alpha\n"))
    assert alpha.now == alpha.old
    assert alpha.new == State("file", 0o4755, 5, alpha.new.mtime_ns, digest("new!\n"))
    assert (changes["link"].old.digest, changes["link"].new.digest) == (digest("alpha"), digest("beta"))
    assert (changes["s/in"].old.size, changes["s/in"].new, changes["s/in"].now.kind) == (3, ABSENT, "file")
    omega = changes["omega"]
    assert (omega.old, omega.now) == (State("file", 0o644, 5, OLD, digest("beta\n")), ABSENT)


def forge() -> None:
    """What a command can try through the mount; the folder's content must stay in sight."""
    for name, value in (("opaque", b"y"), ("whiteout", b""), ("redirect", b"/s"), ("metacopy", b"")):
        for target in ("d", "alpha"):
            with suppress(OSError):
                os.setxattr(target, f"user.overlay.{name}", value)
    with suppress(OSError):
        os.mknod("device", stat.S_IFCHR | 0o600, 0)
    with suppress(OSError):
        os.unlink("beta")
        os.mknod("beta", stat.S_IFCHR | 0o600, 0)


def test_forged_marks_mean_nothing_over_an_overlay(tmp_path: Path) -> None:
    session = held(tmp_path, OVERLAY)
    session.run(forge)
    assert told(found(session)) == ["D beta"]


def test_forged_marks_mean_nothing_in_a_copy(tmp_path: Path) -> None:
    session = held(tmp_path, COPY)
    session.run(forge)
    assert told(found(session)) == ["T beta", "A device"]
    assert {each.new.kind for each in found(session)} == {"special"}
    assert os.getxattr(session.inside / "d", "user.overlay.opaque") == b"y"


@TREES
def test_bits_that_were_taken_away_stay_away_and_sockets_are_named(tmp_path: Path, kind: str) -> None:
    session = held(tmp_path, kind)

    def act() -> None:
        os.makedirs("n/in")
        Path("n/in/f").write_text("closed")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("n/in/sock")
        for name in ("n/in/f", "n/in", "n"):
            os.chmod(name, 0)

    session.run(act)
    before = (session.inside / "n").stat()
    changes = {each.path: each for each in found(session)}
    assert told(list(changes.values())) == ["A n", "A n/in", "A n/in/f", "A n/in/sock"]
    assert changes["n/in/f"].new.digest == digest("closed")
    assert {changes[path].new.mode for path in ("n", "n/in", "n/in/f")} == {0}
    assert changes["n/in/sock"].new.kind == "socket"
    after = (session.inside / "n").stat()
    assert (before.st_mode, before.st_ctime_ns) == (after.st_mode, after.st_ctime_ns)
    fd = opening.open_new(str(session.folder), session.thing, "n/in/f")
    assert os.read(fd, 100) == b"closed"
    os.close(fd)
    os.chmod(session.inside / "n", 0o700)
    os.chmod(session.inside / "n/in", 0o700)


@TREES
def test_a_sparse_file_of_terabytes_is_told_by_what_is_in_it(tmp_path: Path, kind: str) -> None:
    session = held(tmp_path, kind, snapshot=False)
    for name in ("one", "two", "three"):
        (session.tree / name).write_bytes(b"x")
        os.truncate(session.tree / name, 4 << 40)
    session.started_ns = 1 << 62
    session.snapshot()

    def act() -> None:
        os.utime("one")
        with open("two", "r+b") as file:
            file.seek(1 << 40)
            file.write(b"x")
        os.rename("three", "four")

    session.run(act)
    assert told(found(session)) == ["R three > four", "t one", "M two"]
    assert all(each.new.digest.startswith("cells:") for each in found(session))


def test_what_was_pinned_is_the_base(tmp_path: Path) -> None:
    session = held(tmp_path, OVERLAY)
    session.run("echo x >alpha; echo y >beta")
    write(session.tree / "alpha", "applied\n")
    pinned = base.entry_of((session.tree / "alpha").lstat())
    base.pin(str(session.held), "t0", {"alpha": pinned})
    assert told(found(session)) == ["M alpha", "M beta"]


def test_a_run_that_never_began_holds_nothing(tmp_path: Path) -> None:
    session = held(tmp_path, OVERLAY)
    session.inside.rmdir()
    assert found(session) == []


@pytest.mark.parametrize(
    ("bound", "most"), [("jail.kernel.walk.FOLDER_ENTRIES", 3), ("jail.hold.inside.LEFT_BYTES", 20_000)]
)
def test_too_many_names_are_an_error_not_a_short_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, most: int
) -> None:
    session = held(tmp_path, COPY)
    monkeypatch.setattr(bound, most)
    with pytest.raises(JailError, match="too many names"):
        found(session)
