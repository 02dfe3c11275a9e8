"""Landlock: the table derives what it must, and the rules hold and let live, in real processes."""

import errno
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from jail.kernel import landlock
from support.confined import SOURCE, confined, python, workspace

ABI = landlock.abi()
needs_landlock = pytest.mark.skipif(
    landlock.known(ABI) is None, reason=f"needs Landlock 2 or newer; this kernel has {ABI}"
)
needs_ioctl = pytest.mark.skipif(ABI < 5, reason=f"needs Landlock 5 (Linux 6.10); this kernel has {ABI}")
needs_scopes = pytest.mark.skipif(ABI < 6, reason=f"needs Landlock 6 (Linux 6.12); this kernel has {ABI}")


@pytest.fixture
def folder() -> Iterator[Path]:
    with workspace() as made:
        yield made


class TestTheTable:
    def test_versions_only_add(self) -> None:
        for older, newer in zip(landlock.ABIS, landlock.ABIS[1:], strict=False):
            assert newer.version == older.version + 1
            assert older.rights & ~newer.rights == 0
            assert older.scopes & ~newer.scopes == 0
            assert older.attribute_size <= newer.attribute_size

    def test_rights_are_those_of_the_kernel_header(self) -> None:
        assert [landlock.ABIS[0].rights, landlock.REFER, landlock.TRUNCATE, landlock.IOCTL_DEV] == [
            0x1FFF,
            1 << 13,
            1 << 14,
            1 << 15,
        ]

    @pytest.mark.parametrize(
        ("version", "used"), [(0, None), (1, None), (2, 2), (4, 4), (7, 7), (8, 7), (99, 7)]
    )
    def test_the_first_version_counts_as_absent_and_newer_ones_as_the_newest_known(
        self, version: int, used: int | None
    ) -> None:
        found = landlock.known(version)
        assert (found and found.version) == used

    def test_lost_rights_have_names(self) -> None:
        assert landlock.lost(7) == landlock.lost(6) == landlock.lost(99) == []
        assert landlock.lost(5) == ["scopes of signals and abstract sockets (Linux 6.12)"]
        assert landlock.lost(3) == ["ioctl on devices (Linux 6.10)", *landlock.lost(5)]
        assert len(landlock.lost(0)) == len(landlock.lost(1)) == 5

    def test_no_grant_makes_device_nodes(self) -> None:
        nodes = landlock.MAKE_CHAR | landlock.MAKE_BLOCK
        given = landlock.grants(3, [4], devices=[5], proc=6, read=[7])
        assert [grant.rights & nodes for grant in given] == [0] * 5
        assert landlock.NEWEST.rights & nodes == nodes, "and they are denied, not just unmentioned"


def outcome(code: str, folder: Path, *arguments: str, write: list[str] | None = None) -> str:
    """`ok`, or the errno's name, of a statement run behind Landlock alone (None: behind nothing)."""
    wrapped = (
        f"import errno, os, sys\ntry:\n    {code}\n    print('ok')\n"
        "except OSError as error:\n    print(errno.errorcode[error.errno])\n"
    )
    done = python(wrapped, folder, *arguments, filters=False, write=write)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@needs_landlock
class TestTheWall:
    @pytest.fixture
    def outside(self) -> Iterator[Path]:
        """A folder that the uid owns, but no rule lets it write."""
        with workspace() as made:
            (made / "file").write_text("kept\n")
            (made / "file").chmod(0o666)
            yield made

    DENIED: ClassVar = {
        "write": "open(sys.argv[1] + '/file', 'w')",
        "append": "open(sys.argv[1] + '/file', 'a')",
        "create": "open(sys.argv[1] + '/new', 'w')",
        "mkdir": "os.mkdir(sys.argv[1] + '/new')",
        "unlink": "os.unlink(sys.argv[1] + '/file')",
        "symlink": "os.symlink('x', sys.argv[1] + '/new')",
        "fifo": "os.mkfifo(sys.argv[1] + '/new')",
        "rename within": "os.rename(sys.argv[1] + '/file', sys.argv[1] + '/new')",
        "rename out of it": "os.rename(sys.argv[1] + '/file', 'stolen')",
        "link out of it": "os.link(sys.argv[1] + '/file', 'stolen')",
    }

    @pytest.mark.parametrize("name", DENIED)
    def test_nothing_is_written_outside_the_write_paths(self, folder: Path, outside: Path, name: str) -> None:
        assert outcome(self.DENIED[name], folder, str(outside), write=[str(folder)]) in ("EACCES", "EXDEV")
        assert (outside / "file").read_text() == "kept\n"
        assert outcome(self.DENIED[name], folder, str(outside)) == "ok", "positive control"

    @pytest.mark.skipif(ABI < 3, reason=f"needs Landlock 3 (Linux 6.2); this kernel has {ABI}")
    def test_nothing_is_truncated_outside_the_write_paths(self, folder: Path, outside: Path) -> None:
        code = "os.truncate(sys.argv[1] + '/file', 0)"
        assert outcome(code, folder, str(outside), write=[str(folder)]) == "EACCES"
        assert outcome(code, folder, str(outside)) == "ok", "positive control"

    def test_everything_is_read_and_run_everywhere(self, folder: Path, outside: Path) -> None:
        assert (
            outcome(
                "open(sys.argv[1] + '/file').read(), os.listdir('/')",
                folder,
                str(outside),
                write=[str(folder)],
            )
            == "ok"
        )

    def test_within_the_write_paths_all_goes(self, folder: Path) -> None:
        code = (
            "os.makedirs('a/b'); os.mkdir('c'); open('a/f', 'w').close(); os.rename('a/f', 'c/f'); "
            "os.link('c/f', 'a/b/l'); os.rename('a/b', 'c/b'); os.symlink('x', 's'); os.mkfifo('p'); "
            "os.truncate('c/f', 5); os.unlink('c/f'); os.rmdir('a')"
        )
        assert outcome(code, folder, write=[str(folder)]) == "ok"

    def test_files_move_between_two_write_paths(self, folder: Path) -> None:
        for name in ("one", "two"):
            (folder / name).mkdir()
            (folder / name).chmod(0o777)
        code = "open('one/f', 'w').close(); os.rename('one/f', 'two/f'); os.link('two/f', 'one/g')"
        both = [str(folder / "one"), str(folder / "two")]
        assert outcome(code, folder, write=both) == "ok"
        assert outcome("os.rename('two/f', 'f')", folder, write=both) == "EACCES"

    def test_a_single_file_can_be_a_write_path(self, folder: Path, outside: Path) -> None:
        writes = [str(folder), str(outside / "file")]
        assert (
            outcome("open(sys.argv[1] + '/file', 'w').write('changed')", folder, str(outside), write=writes)
            == "ok"
        )
        assert outcome("open(sys.argv[1] + '/other', 'w')", folder, str(outside), write=writes) == "EACCES"

    def test_devices_are_written_and_read(self, folder: Path) -> None:
        code = (
            "[open('/dev/' + n, 'r+b', buffering=0).write(b'x') for n in ('null', 'zero')]; "
            "open('/dev/urandom', 'rb').read(1)"
        )
        assert outcome(code, folder, write=[str(folder)]) == "ok"
        shell = confined(
            ["sh", "-c", "echo x > /dev/null && echo y >> /dev/null"],
            folder,
            filters=False,
            write=[str(folder)],
        )
        assert (shell.returncode, shell.stderr) == (0, "")

    @pytest.mark.parametrize("name", ["oom_score_adj", "comm", "coredump_filter"])
    def test_the_own_proc_is_written_as_the_shell_does_it(self, folder: Path, name: str) -> None:
        text = {"oom_score_adj": "900", "comm": "name", "coredump_filter": "33"}[name]
        shell = confined(
            ["sh", "-c", f"echo {text} > /proc/self/{name}"], folder, filters=False, write=[str(folder)]
        )
        assert (shell.returncode, shell.stderr) == (0, "")

    def test_pipes_and_memfds_are_opened_again_through_proc(self, folder: Path) -> None:
        code = (
            "r, w = os.pipe(); open(f'/proc/self/fd/{w}', 'w').write('x'); m = os.memfd_create('m'); "
            "open(f'/proc/self/fd/{m}', 'w').write('x'); open(f'/dev/fd/{r}').close()"
        )
        assert outcome(code, folder, write=[str(folder)]) == "ok"

    TERMINAL = (
        "import fcntl, termios, pty; m, s = pty.openpty(); os.login_tty(s) if hasattr(os, 'login_tty') else "
        "(os.setsid(), fcntl.ioctl(s, termios.TIOCSCTTY, 0)); "
        "termios.tcgetattr(os.open('/dev/tty', os.O_RDWR)); "
        "fcntl.ioctl(os.open(os.ttyname(s), os.O_RDWR), termios.TIOCGWINSZ, bytes(8)); os._exit(7)"
    )

    def test_a_terminal_made_inside_is_used_and_controlled(self, folder: Path) -> None:
        code = f"import os\n{self.TERMINAL}"
        assert python(code, folder, filters=False, write=[str(folder)]).returncode == 7

    @needs_ioctl
    def test_a_device_that_no_rule_names_has_no_ioctl_and_is_not_written(self, folder: Path) -> None:
        """The same terminal calls without the grant for /dev."""
        code = f"""
import os, sys
sys.path.insert(0, {str(SOURCE)!r})
from jail.kernel import landlock
landlock.restrict(landlock.grants(os.open("/", os.O_PATH), []), landlock.known(landlock.abi()))
try:
    open("/dev/null", "w")
except PermissionError:
    print("refused")
"""
        assert python(code, folder, filters=False, write=[str(folder)]).stdout == "refused\n"

    def test_mounting_is_denied_to_a_mapped_root_too(self, folder: Path) -> None:
        code = (
            "import ctypes; libc = ctypes.CDLL(None, use_errno=True); os.makedirs('m', exist_ok=True); "
            "assert libc.unshare(0x10020000) == 0; "
            "r = libc.mount(b'none', b'm', b'tmpfs', 0, None); e = ctypes.get_errno(); "
            "sys.exit(print('ok' if r == 0 else errno.errorcode[e]))"
        )
        control = python(f"import errno, os, sys\n{code}", folder, filters=False)
        if control.stdout.strip() != "ok":
            pytest.skip("this host makes no user namespaces for this uid")
        assert (
            python(
                f"import errno, os, sys\n{code}", folder, filters=False, write=[str(folder)]
            ).stdout.strip()
            == "EPERM"
        )

    def test_ptrace_reaches_nothing_outside(self, folder: Path) -> None:
        """Another process of the same uid is as far away as one of another uid."""
        code = "open(f'/proc/{sys.argv[1]}/environ', 'rb').read(1)"
        with sleeper(folder) as other:
            assert outcome(code, folder, str(other.pid), write=[str(folder)]) == "EACCES"
            assert outcome(code, folder, str(other.pid)) == "ok", "positive control"

    @needs_scopes
    def test_signals_reach_nothing_outside(self, folder: Path) -> None:
        with sleeper(folder) as other:
            assert (
                outcome("os.kill(int(sys.argv[1]), 15)", folder, str(other.pid), write=[str(folder)])
                == "EPERM"
            )
            assert other.poll() is None
            assert outcome("os.kill(int(sys.argv[1]), 15)", folder, str(other.pid)) == "ok", (
                "positive control"
            )
            assert other.wait(10) == -signal.SIGTERM

    @needs_scopes
    def test_abstract_sockets_outside_are_out_of_reach(self, folder: Path) -> None:
        code = "import socket; socket.socket(socket.AF_UNIX).connect(chr(0) + sys.argv[1])"
        name = f"jail-test-{os.getpid()}"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("\0" + name)
            listener.listen()
            assert outcome(code, folder, name, write=[str(folder)]) == "EPERM"
            assert outcome(code, folder, name) == "ok", "positive control"

    def test_own_children_are_signalled_and_traced(self, folder: Path) -> None:
        code = (
            "import subprocess; p = subprocess.Popen(['sleep', '60']); "
            "open(f'/proc/{p.pid}/environ').read(); p.kill(); p.wait()"
        )
        assert outcome(code, folder, write=[str(folder)]) == "ok"


class sleeper:  # noqa: N801 -- read as a word: `with sleeper(folder)`
    """A process of the confined uid that is not behind the wall."""

    def __init__(self, folder: Path) -> None:
        identity = {"user": 65533, "group": 65533, "extra_groups": []} if os.geteuid() == 0 else {}
        self.process = subprocess.Popen(["sleep", "60"], cwd=folder, **identity)

    def __enter__(self) -> subprocess.Popen[bytes]:
        return self.process

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


@needs_landlock
def test_without_no_new_privs_the_kernel_refuses_and_the_call_is_named() -> None:
    code = f"""
import os, sys
sys.path.insert(0, {str(SOURCE)!r})
from jail.kernel import landlock
try:
    landlock.restrict(landlock.grants(os.open("/", os.O_PATH), []), landlock.known(landlock.abi()))
except OSError as error:
    print(error)
"""
    if "NoNewPrivs:\t1" in Path("/proc/self/status").read_text():
        pytest.skip("these tests run with no_new_privs already")
    identity = {"user": 65533, "group": 65533, "extra_groups": []} if os.geteuid() == 0 else {}
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, **identity
    )
    assert done.stdout == "landlock_restrict_self: Operation not permitted (EPERM)\n"


@needs_landlock
def test_a_rule_that_the_kernel_refuses_names_its_path() -> None:
    reader, writer = os.pipe()
    try:
        with (
            tempfile.TemporaryFile() as file,
            pytest.raises(OSError, match=r"landlock_add_rule\(a write path, fd") as caught,
        ):
            landlock.restrict(
                landlock.grants(file.fileno(), [reader]), landlock.known(ABI) or landlock.NEWEST
            )
    finally:
        os.close(reader)
        os.close(writer)
    assert caught.value.errno == errno.EBADFD
