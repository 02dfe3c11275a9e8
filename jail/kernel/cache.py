"""Compiled artefacts (policy, filters, netlink messages, git identity) kept for the next launch.

Rule: the cache is a convenience, never an authority. A file counts only when it and its folder are ours, for
us alone, no link, and when its content has the key and the digest that it should have; anything odd means
building anew, silently, because a rebuild costs a moment and a wrong artefact costs a wall. The
folder is never visible inside a jail.
"""

import os
import stat

from jail.kernel.digest import sha256
from jail.light import Final

LARGEST: Final = 4 << 20
"""Bytes of one artefact; the largest, a parsed policy, has a few KiB."""
_MAGIC: Final = b"jail cache 1\n"
_DIGEST: Final = 32
_HEAD: Final = len(_MAGIC) + 2 * _DIGEST
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


def key(*parts: str) -> bytes:
    """A key that no other list of parts has: whatever decides the artefact belongs in it."""
    return bytes(sha256("\0".join(parts).encode("utf-8", "surrogateescape")).digest())


def generation(folder: str, modules: tuple[str, ...]) -> str:
    """Size and time of each module (a file name in `folder`) that makes an artefact: in a checkout they
    change while the version does not.
    """
    found = []
    for module in modules:
        try:
            state = os.stat(f"{folder}/{module}")
        except OSError:  # installed in some other form than files
            continue
        found.append(f"{module} {state.st_size} {state.st_mtime_ns}")
    return "\n".join(found)


def read(folder: str, name: str, wanted: bytes) -> bytes | None:
    """The artefact `name` kept under the key `wanted`, or None for any reason whatever."""
    try:
        folder_fd = _open_folder(folder)
    except (OSError, ValueError):
        return None
    try:
        # O_NONBLOCK: a FIFO of that name must not hold the launch.
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder_fd)
    except OSError:
        return None
    finally:
        os.close(folder_fd)
    try:
        content = os.read(fd, LARGEST + _HEAD) if _is_for_us_alone(os.fstat(fd)) else b""
    except OSError:
        return None
    finally:
        os.close(fd)
    body = content[_HEAD:]
    return body if content[:_HEAD] == _head(wanted, body) else None


def write(folder: str, name: str, wanted: bytes, body: bytes) -> None:
    """Keep `body`, under another name first: two launches at once never see half a file. What cannot be kept
    is not: a full or read-only disk, or a folder that others may write, costs time only.
    """
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        folder_fd = _open_folder(folder)
    except (OSError, ValueError):
        return
    partial = f".{name}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        _write_whole(folder_fd, partial, _head(wanted, body) + body)
        os.rename(partial, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
    except OSError:
        _forget(folder_fd, partial)
    finally:
        os.close(folder_fd)


def _write_whole(folder_fd: int, name: str, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(name, flags, 0o600, dir_fd=folder_fd)
    try:
        os.fchmod(fd, 0o600)  # whatever the umask left
        if os.write(fd, content) != len(content):
            raise OSError("short write")
    finally:
        os.close(fd)


def _forget(folder_fd: int, partial: str) -> None:
    try:
        os.unlink(partial, dir_fd=folder_fd)
    except OSError:
        return  # what cannot be written cannot always be deleted; the name is never read


def _open_folder(folder: str) -> int:
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY)
    found = os.fstat(fd)
    if found.st_uid != os.geteuid() or found.st_mode & _WRITABLE_BY_OTHERS:
        os.close(fd)
        raise PermissionError(folder)
    return fd


def _is_for_us_alone(found: os.stat_result) -> bool:
    plain = stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o600 and found.st_nlink == 1
    return plain and found.st_uid == os.geteuid() and found.st_size <= LARGEST + _HEAD


def _head(wanted: bytes, body: bytes) -> bytes:
    return _MAGIC + wanted + bytes(sha256(wanted + body).digest())


def stale(folder: str, before: float, partial_before: float) -> list[str]:
    """Names in the cache folder that no launch will use: artefacts written before `before` (when this version
    of jail came), and halves of them that a writer killed before `partial_before` left (seconds since the
    epoch).

    What does not look like ours, and folders, are left alone; none where the folder cannot be trusted.
    """
    try:
        folder_fd = _open_folder(folder)
    except (OSError, ValueError):
        return []
    try:
        names = sorted(os.listdir(folder_fd))
        return [name for name in names if _is_stale(folder_fd, name, before, partial_before)]
    except OSError:
        return []
    finally:
        os.close(folder_fd)


def _is_stale(folder_fd: int, name: str, before: float, partial_before: float) -> bool:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder_fd)
    except OSError:
        return False
    try:
        facts = os.fstat(fd)
        ours = stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid() and facts.st_nlink == 1
        if not ours:
            return False
        if name.startswith(".") and name.count(".") >= 3:
            return facts.st_mtime < partial_before
        return os.read(fd, len(_MAGIC)) == _MAGIC and facts.st_mtime < before
    except OSError:
        return False
    finally:
        os.close(fd)


def remove(folder: str, name: str) -> None:
    """Take one artefact away. Raises OSError."""
    folder_fd = _open_folder(folder)
    try:
        os.unlink(name, dir_fd=folder_fd)
    finally:
        os.close(folder_fd)
