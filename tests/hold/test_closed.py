"""What has lost its permission bits is read by its owner all the same, and nothing is changed for it."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jail.errors import JailError
from jail.hold import closed

pytestmark = pytest.mark.skipif(os.geteuid() == 0, reason="to uid 0 nothing is closed")


@pytest.fixture
def secret(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "a/b/secret"
    path.parent.mkdir(parents=True)
    path.write_text("content")
    for each in (path, path.parent, path.parent.parent):
        os.chmod(each, 0)
    yield path
    for each in (path.parent.parent, path.parent):
        os.chmod(each, 0o700)


def test_a_closed_file_is_read_and_its_bits_and_change_time_stay(secret: Path, tmp_path: Path) -> None:
    with pytest.raises(PermissionError):
        secret.read_text()
    before = (tmp_path / "a").stat()
    assert closed.answer(secret.read_text) == "content"
    fd = closed.opened(lambda: os.open(secret, os.O_RDONLY))
    assert os.read(fd, 100) == b"content"
    assert not os.get_inheritable(fd)
    os.close(fd)
    after = (tmp_path / "a").stat()
    assert (before.st_mode, before.st_ctime_ns) == (after.st_mode, after.st_ctime_ns)


def test_what_is_not_ours_stays_closed() -> None:
    with pytest.raises(PermissionError) as raised:
        closed.answer(lambda: Path("/etc/shadow").read_text())
    assert raised.value.errno == errno.EACCES


def test_long_answers_come_whole_and_no_fd_and_no_child_is_left() -> None:
    before = os.listdir("/proc/self/fd")
    assert closed.answer(lambda: ["x" * 1000, ("y\udcff", 1)] * 5000) == ["x" * 1000, ("y\udcff", 1)] * 5000
    assert os.listdir("/proc/self/fd") == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def raises(error: Exception) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


def test_errors_are_those_of_the_work() -> None:
    with pytest.raises(FileNotFoundError):
        closed.opened(lambda: os.open("/nowhere", os.O_RDONLY))
    with pytest.raises(JailError, match="told") as raised:
        closed.answer(raises(JailError("told", where="here", hint="this")))
    assert (raised.value.where, raised.value.hint) == ("here", "this")
    with pytest.raises(JailError, match="defect in jail"):
        closed.answer(raises(ValueError("of ours")))
