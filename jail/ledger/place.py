"""Where sessions lie: `$XDG_STATE_HOME or ~/.local/state`/jail/sessions/<id>/ with ledger.jsonl, head and
lock.

Rule: each folder that jail owns is opened relative to its parent, without following a symbolic link, and must
be a folder of this user that no one else may write; else somebody else could put another session in its
place. What lies above is the user's own choice (a linked home is fine); it only must not let others rename
what is in it.

A session runs while the flock(2) on its `lock` is held: the kernel drops it with the last process that holds
it, so no stale pid file can lie. The id's stamp is UTC. The folder is made under a hidden name and renamed
when it is locked, so a listing never sees a session that is not yet running.
"""

import errno
import fcntl
import os
import stat
import time

from jail.errors import EXIT_USAGE, JailError
from jail.ledger.failure import failure
from jail.light import Final, Mapping, NamedTuple

SESSIONS: Final = "sessions"
LOCK: Final = "lock"
SOCKET: Final = "socket"
"""Of the supervisor of a session that runs, in its folder (launch/joins.py)."""
LAST: Final = "last"
NEW: Final = ".new-"
"""Before the id of a session that is being made."""
_OPEN_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: no i, l, o, u, so that an id survives being read aloud."""
_SUFFIX_BYTES: Final = 5
"""Forty bits of getrandom(2): another user cannot guess the name, and two sessions of one second do not
meet."""
_SUFFIX: Final = _SUFFIX_BYTES * 8 // 5
_STAMP: Final = len("20261130-141502")
_TRIES: Final = 4
_SHOWN: Final = 5
"""How many sessions an ambiguous prefix names; more does not help to choose."""


class Session(NamedTuple):
    """A new session: its id, its folder, and the descriptor that keeps its lock.

    Close `lock_fd` in every process that may outlive the supervisor (exec closes it): the session counts as
    running until the last copy is closed.
    """

    id: str
    folder: str
    lock_fd: int


def state_folder(environ: Mapping[str, str], home: str) -> str:
    """The state folder of jail for this user. A relative XDG_STATE_HOME is ignored, as the XDG base directory
    specification says.
    """
    base = environ.get("XDG_STATE_HOME", "")
    if not base.startswith("/"):
        if not home.startswith("/"):
            raise JailError(
                "there is no home folder to keep sessions in",
                where=f"HOME={home!r}",
                hint="set HOME or XDG_STATE_HOME to an absolute path",
            )
        base = os.path.join(home, ".local", "state")
    return os.path.join(os.path.normpath(base), "jail")


def is_id(text: object) -> bool:
    """Whether `text` is one, and has the form of a session's id."""
    if not isinstance(text, str):
        return False
    stamp, suffix = text[: _STAMP + 1], text[_STAMP + 1 :]
    digits = stamp[:8] + stamp[9:15]
    return (
        len(digits) == 14
        and digits.isascii()
        and digits.isdigit()
        and stamp[8:9] == "-" == stamp[15:16]
        and len(suffix) == _SUFFIX
        and all(char in _ALPHABET for char in suffix)
    )


def new_session(state: str) -> Session:
    """Make the folder of a new session under `state`, locked. Raises JailError: what, where, what to do."""
    sessions_fd = _open_sessions(state, create=True)
    try:
        for _ in range(_TRIES):
            name = _new_id()
            try:
                return Session(name, os.path.join(state, SESSIONS, name), _make(sessions_fd, name))
            except FileExistsError:
                continue
        raise FileExistsError(errno.EEXIST, "every id is taken")
    except OSError as error:
        raise failure("make a folder for this session", os.path.join(state, SESSIONS), error) from error
    finally:
        os.close(sessions_fd)


def new_scratch(state: str) -> tuple[str, int]:
    """An empty hidden folder beside the sessions, by its name, and a descriptor of the folder of them all.

    Whoever makes it removes it; what was left behind is taken for half a session, which `jail gc` removes.
    Raises JailError as new_session does.
    """
    sessions_fd = _open_sessions(state, create=True)
    try:
        name = NEW + _new_id()
        os.mkdir(name, 0o700, dir_fd=sessions_fd)
    except OSError as error:
        os.close(sessions_fd)
        raise failure("try what can be held", os.path.join(state, SESSIONS), error) from error
    return name, sessions_fd


def listing(state: str) -> list[str]:
    """The ids of all sessions, newest first; none where nothing ever ran. Raises JailError as new_session
    does.
    """
    try:
        sessions_fd = _open_sessions(state, create=False)
    except FileNotFoundError:
        return []
    try:
        names = [name for name in os.listdir(sessions_fd) if is_id(name)]
        return sorted(names, key=lambda name: (name[:_STAMP], _made(sessions_fd, name)), reverse=True)
    except OSError as error:
        raise failure("list the sessions", os.path.join(state, SESSIONS), error) from error
    finally:
        os.close(sessions_fd)


def open_sessions(state: str) -> int:
    """A descriptor of the folder of all sessions, checked; -1 where nothing ever ran. Raises JailError."""
    try:
        return _open_sessions(state, create=False)
    except FileNotFoundError:
        return -1


def find(state: str, text: str) -> str:
    """The folder of the one session whose id begins with `text`, or of the newest for `last`.

    Raises JailError with EXIT_USAGE when there is none or more than one.
    """
    names = listing(state)
    found = names[:1] if text == LAST else [name for name in names if text and name.startswith(text)]
    if len(found) == 1:
        return os.path.join(state, SESSIONS, found[0])
    hint = "`jail sessions` lists them"
    if found:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        hint = f"give more of the id: {', '.join(found[:_SHOWN])}{more}"
    what = f"{len(found)} sessions begin with {text!r}" if found else f"no session {text!r}"
    raise JailError(what, where=os.path.join(state, SESSIONS), hint=hint, code=EXIT_USAGE)


def running(folder: str) -> bool:
    """Whether a supervisor holds the lock of the session in `folder`. False where there is no lock to ask."""
    try:
        fd = os.open(os.path.join(folder, LOCK), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError):
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
    return False


def _new_id() -> str:
    number = int.from_bytes(os.urandom(_SUFFIX_BYTES), "big")
    suffix = "".join([_ALPHABET[number >> shift & 31] for shift in range(0, _SUFFIX * 5, 5)])
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{suffix}"


def _make(sessions_fd: int, name: str) -> int:
    hidden = NEW + name
    os.mkdir(hidden, 0o700, dir_fd=sessions_fd)
    folder_fd = os.open(hidden, _OPEN_FOLDER | os.O_NOFOLLOW, dir_fd=sessions_fd)
    lock_fd = -1
    try:
        os.fchmod(folder_fd, 0o700)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        lock_fd = os.open(LOCK, flags, 0o600, dir_fd=folder_fd)
        fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rename(hidden, name, src_dir_fd=sessions_fd, dst_dir_fd=sessions_fd)
    except OSError as error:
        if lock_fd >= 0:
            os.unlink(LOCK, dir_fd=folder_fd)
            os.close(lock_fd)
        os.rmdir(hidden, dir_fd=sessions_fd)
        if error.errno == errno.ENOTEMPTY:
            raise FileExistsError(errno.EEXIST, "that id is taken") from error
        raise
    finally:
        os.close(folder_fd)
    return lock_fd


def _made(sessions_fd: int, name: str) -> int:
    try:
        return os.stat(f"{name}/{LOCK}", dir_fd=sessions_fd, follow_symlinks=False).st_mtime_ns
    except OSError:
        return 0


def _open_sessions(state: str, *, create: bool) -> int:
    """A descriptor of the checked sessions folder. Raises FileNotFoundError only when not creating."""
    try:
        parent_fd = _open_base(os.path.dirname(state), create=create)
        try:
            state_fd = _open_owned(parent_fd, os.path.basename(state), state, create=create)
        finally:
            os.close(parent_fd)
        try:
            return _open_owned(state_fd, SESSIONS, os.path.join(state, SESSIONS), create=create)
        finally:
            os.close(state_fd)
    except FileNotFoundError as error:
        if create:
            raise failure("open the state folder", state, error) from error
        raise
    except OSError as error:
        raise failure("open the state folder", state, error) from error


def _open_base(path: str, *, create: bool) -> int:
    """The folder above jail's own. Missing parts are made 0700, each in a folder that others cannot rename
    things in.
    """
    try:
        fd = os.open(path, _OPEN_FOLDER)
    except FileNotFoundError:
        if not create or path == "/":
            raise
        parent_fd = _open_base(os.path.dirname(path), create=True)
        try:
            return _open_owned(parent_fd, os.path.basename(path), path, create=True)
        finally:
            os.close(parent_fd)
    facts = os.fstat(fd)
    # Group-writable passes here: umask 002 and a group for each user (Fedora, Ubuntu) make ~/.local/state so.
    open_to_all = facts.st_mode & stat.S_IWOTH and not facts.st_mode & stat.S_ISVTX
    if facts.st_uid not in (0, os.geteuid()) or open_to_all:
        os.close(fd)
        raise _unsafe("the folder above jail's state is not safe", path, facts)
    return fd


def _open_owned(parent_fd: int, name: str, path: str, *, create: bool) -> int:
    made = False
    if create:
        try:
            os.mkdir(name, 0o700, dir_fd=parent_fd)
            made = True
        except FileExistsError:
            pass
    fd = os.open(name, _OPEN_FOLDER | os.O_NOFOLLOW, dir_fd=parent_fd)
    if made:
        os.fchmod(fd, 0o700)
    facts = os.fstat(fd)
    if facts.st_uid != os.geteuid() or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        os.close(fd)
        raise _unsafe("jail's state folder is not safe", path, facts)
    return fd


def _unsafe(what: str, path: str, facts: os.stat_result) -> JailError:
    mine = os.geteuid()
    if facts.st_uid != mine:
        who = f"it belongs to uid {facts.st_uid}, and you are uid {mine}"
        to_do = "set HOME or XDG_STATE_HOME to a folder of your own (with sudo: sudo -H)"
    else:
        who = f"others may write it (mode {stat.S_IMODE(facts.st_mode):04o})"
        to_do = f"look at what is in it, then: chmod go-w {path}"
    return JailError(f"{what}: {who}", where=path, hint=to_do)
