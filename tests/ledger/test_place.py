import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from jail.errors import EXIT_USAGE, JailError
from jail.ledger import place

HOME = "/home/someone"
IDS = ["20261130-141502-k3f9x2ab", "20261130-141503-00000000", "20261201-000000-zzzzzzzz"]


@pytest.fixture
def state(tmp_path: Path) -> str:
    return str(tmp_path / "state" / "jail")


def sessions_in(state: str, names: list[str]) -> Path:
    folder = Path(state) / "sessions"
    folder.mkdir(parents=True, mode=0o700)
    os.chmod(state, 0o700)
    folder.chmod(0o700)
    for name in names:
        (folder / name).mkdir(mode=0o700)
    return folder


@pytest.mark.parametrize(
    ("environ", "home", "expected"),
    [
        ({}, HOME, "/home/someone/.local/state/jail"),
        ({"XDG_STATE_HOME": ""}, HOME, "/home/someone/.local/state/jail"),
        ({"XDG_STATE_HOME": "relative"}, HOME, "/home/someone/.local/state/jail"),
        ({"XDG_STATE_HOME": "/var/s/"}, HOME, "/var/s/jail"),
        ({"XDG_STATE_HOME": "/var/s"}, "", "/var/s/jail"),
    ],
)
def test_the_state_folder_follows_the_xdg_specification(
    environ: dict[str, str], home: str, expected: str
) -> None:
    assert place.state_folder(environ, home) == expected


@pytest.mark.parametrize("home", ["", "relative", "~"])
def test_without_a_home_there_is_an_error_with_an_answer(home: str) -> None:
    with pytest.raises(JailError) as caught:
        place.state_folder({}, home)
    assert "XDG_STATE_HOME" in caught.value.hint


@pytest.mark.parametrize("name", IDS)
def test_these_are_ids(name: str) -> None:
    assert place.is_id(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "20261130-141502-",
        "20261130-141502-k3f9x2",
        "20261130-141502-k3f9x2abc",
        "20261130_141502-k3f9x2ab",
        "20261130-141502-K3F9X2AB",
        "2026113x-141502-k3f9x2ab",
        "٢0261130-141502-k3f9x2ab",
        ".new-20261130-141502-k3f9x2ab",
        "heads.jsonl",
        "20261130-141502-../../..",
    ],
)
def test_these_are_not_ids(name: str) -> None:
    assert not place.is_id(name)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o177])
def test_a_new_session_has_folders_and_a_lock_for_its_user_alone(state: str, umask: int) -> None:
    before = os.umask(umask)
    try:
        session = place.new_session(state)
    finally:
        os.umask(before)
    try:
        assert place.is_id(session.id)
        assert session.folder == f"{state}/sessions/{session.id}"
        for folder in (os.path.dirname(state), state, f"{state}/sessions", session.folder):
            assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        assert os.stat(f"{session.folder}/lock").st_mode & 0o077 == 0
        assert os.listdir(f"{state}/sessions") == [session.id]
        assert not os.get_inheritable(session.lock_fd)
        assert place.running(session.folder)
    finally:
        os.close(session.lock_fd)
    assert not place.running(session.folder)


def test_a_hundred_sessions_have_a_hundred_suffixes(state: str) -> None:
    sessions = [place.new_session(state) for _ in range(100)]
    for session in sessions:
        os.close(session.lock_fd)
    assert len({session.id[-8:] for session in sessions}) == 100
    assert set(place.listing(state)) == {session.id for session in sessions}


def test_an_id_that_is_taken_is_not_used_twice(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = iter([IDS[0], IDS[0], IDS[1]])
    monkeypatch.setattr(place, "_new_id", lambda: next(names))
    first, second = place.new_session(state), place.new_session(state)
    os.close(first.lock_fd)
    os.close(second.lock_fd)
    assert (first.id, second.id) == (IDS[0], IDS[1])
    assert sorted(os.listdir(f"{state}/sessions")) == IDS[:2]


def test_when_every_id_is_taken_it_gives_up_with_an_answer(
    state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "_new_id", lambda: IDS[0])
    os.close(place.new_session(state).lock_fd)
    with pytest.raises(JailError, match="make a folder"):
        place.new_session(state)
    assert os.listdir(f"{state}/sessions") == [IDS[0]]


def test_the_lock_falls_with_the_process_that_holds_it(state: str) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from jail.ledger import place\n"
        "print(place.new_session(sys.argv[1]).folder, flush=True)\n"
        "sys.stdin.read()"
    )
    checkout = str(Path(place.__file__).parents[2])
    child = subprocess.Popen(
        [sys.executable, "-c", code, state, checkout],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    folder = child.stdout.readline().strip()
    assert place.running(folder)
    child.kill()
    child.communicate()
    assert not place.running(folder)


def test_asking_whether_it_runs_does_not_take_the_lock(state: str) -> None:
    session = place.new_session(state)
    os.close(session.lock_fd)
    asking = os.open(f"{session.folder}/lock", os.O_RDONLY)
    fcntl.flock(asking, fcntl.LOCK_SH)
    assert not place.running(session.folder)
    os.close(asking)


@pytest.mark.parametrize("what", ["nothing", "pipe", "link", "folder"])
def test_where_no_lock_can_be_asked_nothing_runs(tmp_path: Path, what: str) -> None:
    lock = tmp_path / "lock"
    if what == "pipe":
        os.mkfifo(lock)
    elif what == "link":
        lock.symlink_to("/dev/zero")
    elif what == "folder":
        lock.mkdir()
    assert not place.running(str(tmp_path))
    assert not place.running(f"{tmp_path}\0")


@pytest.mark.parametrize("part", ["state/jail", "state/jail/sessions"])
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777, 0o1777])
def test_a_state_folder_that_others_may_write_is_refused(
    tmp_path: Path, state: str, part: str, mode: int
) -> None:
    sessions_in(state, [])
    (tmp_path / part).chmod(mode)
    for call in (place.new_session, place.listing):
        with pytest.raises(JailError, match="others may write it") as caught:
            call(state)
        assert caught.value.where == str(tmp_path / part)
        assert "chmod go-w" in caught.value.hint


def test_a_folder_above_that_all_may_write_is_refused_unless_sticky(tmp_path: Path, state: str) -> None:
    above = tmp_path / "state"
    above.mkdir()
    above.chmod(0o777)
    with pytest.raises(JailError, match="others may write it"):
        place.new_session(state)
    assert os.listdir(above) == []
    for mode in (0o1777, 0o775):
        above.chmod(mode)
        os.close(place.new_session(state).lock_fd)


@pytest.mark.parametrize("part", ["state/jail", "state/jail/sessions"])
def test_a_symbolic_link_in_its_own_folders_is_refused(tmp_path: Path, state: str, part: str) -> None:
    target = tmp_path / "target"
    target.mkdir(mode=0o700)
    link = tmp_path / part
    link.parent.mkdir(parents=True, mode=0o700)
    link.symlink_to(target)
    with pytest.raises(JailError, match="Not a directory"):
        place.new_session(state)
    assert os.listdir(target) == []


def test_a_link_above_its_own_folders_is_the_users_choice(tmp_path: Path, state: str) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "state").symlink_to("elsewhere")
    os.close(place.new_session(state).lock_fd)
    assert len(place.listing(str(tmp_path / "elsewhere" / "jail"))) == 1


@pytest.mark.root
@pytest.mark.parametrize("part", ["state", "state/jail", "state/jail/sessions"])
def test_a_folder_of_another_user_is_refused(tmp_path: Path, state: str, part: str) -> None:
    sessions_in(state, [])
    os.chown(tmp_path / part, 1234, 1234)
    with pytest.raises(JailError, match="it belongs to uid 1234, and you are uid 0") as caught:
        place.new_session(state)
    assert "sudo -H" in caught.value.hint


def test_a_session_is_found_by_its_beginning_or_as_the_last(state: str) -> None:
    sessions_in(state, [*IDS, ".new-20270101-000000-00000000", "heads.jsonl", "zzz"])
    assert place.listing(state) == IDS[::-1]
    for text, name in [
        ("last", IDS[2]),
        (IDS[0], IDS[0]),
        ("20261130-141503", IDS[1]),
        ("202612", IDS[2]),
    ]:
        assert place.find(state, text) == f"{state}/sessions/{name}"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("2026", "3 sessions begin with '2026'", "give more of the id"),
        ("2027", "no session '2027'", "jail sessions"),
        ("", "no session ''", "jail sessions"),
        ("..", "no session '..'", "jail sessions"),
    ],
)
def test_what_names_no_single_session_is_a_wrong_command_line(
    state: str, text: str, message: str, hint: str
) -> None:
    sessions_in(state, IDS)
    with pytest.raises(JailError) as caught:
        place.find(state, text)
    assert caught.value.message == message
    assert hint in caught.value.hint
    assert caught.value.code == EXIT_USAGE


def test_looking_where_nothing_ever_ran_makes_nothing(tmp_path: Path, state: str) -> None:
    assert place.listing(state) == []
    with pytest.raises(JailError, match="no session 'last'"):
        place.find(state, "last")
    assert os.listdir(tmp_path) == []


def test_of_two_sessions_of_one_second_the_later_is_the_last(
    state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = iter(["20261130-141502-zzzzzzzz", "20261130-141502-00000000"])
    monkeypatch.setattr(place, "_new_id", lambda: next(names))
    for when in (1.0, 2.0):
        session = place.new_session(state)
        os.utime(f"{session.folder}/lock", (when, when))
        os.close(session.lock_fd)
    assert place.find(state, "last").endswith("00000000")


@pytest.mark.parametrize("step", ["open", "flock", "rename"])
def test_a_step_that_fails_leaves_nothing(state: str, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    sessions = sessions_in(state, [])

    def refuse(*_args: object, **_options: object) -> int:
        raise OSError(28, "full")

    real = os.open

    def refuse_lock(path: str, *args: int, **options: int) -> int:
        return refuse() if path == "lock" else real(path, *args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(fcntl if step == "flock" else os, step, refuse_lock if step == "open" else refuse)
        with pytest.raises(JailError, match="make a folder for this session"):
            place.new_session(state)
    assert os.listdir(sessions) == []
