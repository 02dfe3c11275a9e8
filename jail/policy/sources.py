"""The files that a policy is made of: where they lie, and how they are read.

Rule: a policy decides what a run may do, so what anybody may write is refused, and so is what is not the file
that it seems to be. A file that is not there takes no part; one that is there and cannot be read refuses the
run. Which files take part is one rule:

    --policy FILE          that file alone, on the level that its `base` names or on nothing
    else                   a shipped level (--policy NAME, `base` of the person's file, or the default), and
                           the person's own file, which may change anything
    then                   `.jail.toml` at the root of the workspace, which may only take away
"""

import errno
import os
import stat

from jail.errors import EXIT_USAGE, JailError
from jail.light import Final, NamedTuple

DEFAULT: Final = "overnight"
"""The level of a run that names none: the one for when nobody watches."""
USER_FILE: Final = "policy.toml"
"""Name of the person's own file in jail's configuration folder."""
PROJECT_FILE: Final = ".jail.toml"
"""Name of a project's file at the root of the workspace; plan/protected.py keeps it read-only inside."""
LARGEST_FILE: Final = 1 << 20
"""Bytes of a policy file; the largest shipped one has 10 KiB, and no person writes more than this."""
LARGEST_PROJECT: Final = 1 << 16
"""Bytes of a project's file: whoever wrote the project wrote it, and it is judged before every run there."""


class Text(NamedTuple):
    """A file as it was read: its path, its bytes, and the state (fstat(2)) by which a change is seen."""

    file: str
    content: bytes
    state: str = ""


class Given(NamedTuple):
    """What takes part beside the shipped files. `level` is the one that --policy names, else "".

    `workspace` is canonical, and "" where no project file takes part: only that depends on it.
    """

    level: str
    own: Text | None
    user: Text | None
    project: Text | None
    home: str
    workspace: str


def gather(chosen: str | None, home: str, user: str = "", workspace: str = "") -> Given:
    """Read what takes part when `chosen` is the value of --policy, None where there is none: an empty one, as
    an unset variable leaves it, is no level.

    `user` is the path of the person's file and `workspace` the folder worked on; "" leaves that layer out.
    Raises JailError for a file that is there and cannot be believed.
    """
    found = find(chosen) if chosen is not None else ""
    own = read(found) if chosen is not None and is_file(chosen) else None
    real = os.path.realpath(workspace) if workspace else ""
    project = _project(real) if real else None
    return Given(
        level=chosen if chosen is not None and own is None else "",
        own=own,
        user=_user(user) if user and own is None else None,
        project=project,
        home=home,
        workspace=real if project is not None else "",
    )


def is_file(chosen: str) -> bool:
    """Whether a value of --policy is a file: `/` or `.toml` makes it one, a bare name is a shipped level."""
    return "/" in chosen or chosen.endswith(".toml")


def shipped_folder() -> str:
    """The folder of the shipped policies: `jail/policies` of a wheel, `policies` of a checkout."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = os.path.join(package, "policies")
    return installed if os.path.isdir(installed) else os.path.join(os.path.dirname(package), "policies")


def shipped_names(folder: str = "") -> list[str]:
    """The names of the shipped levels, sorted; of the parts where `folder` is "parts"."""
    try:
        files = os.listdir(os.path.join(shipped_folder(), folder))
    except OSError:
        return []
    return sorted(file.removesuffix(".toml") for file in files if file.endswith(".toml"))


def shipped(name: str, folder: str = "") -> Text:
    """A shipped level, or a part; `name` is one of `shipped_names(folder)`."""
    return read(os.path.join(shipped_folder(), folder, f"{name}.toml"))


def find(chosen: str) -> str:
    """The absolute path of a policy that --policy may name; JailError where it is no level and no file."""
    if is_file(chosen):
        return os.path.abspath(chosen)
    names = shipped_names()
    if chosen in names:
        return os.path.join(shipped_folder(), f"{chosen}.toml")
    raise JailError(
        f"there is no shipped policy `{chosen}`",
        where="--policy",
        hint=f"shipped: {', '.join(names) or 'none (jail is not whole)'}; name a file of yours with a slash",
        code=EXIT_USAGE,
    )


def read(file: str) -> Text:
    """A policy file that must be there; JailError where it cannot be read or anybody may write it."""
    found = _read(file, 0)
    if found is None:
        raise _unfit(
            file, f"cannot be opened: {os.strerror(errno.ENOENT)}", "name a policy file that is there"
        )
    return found


def _user(file: str) -> Text | None:
    """The person's file. Links are followed, as collections of settings are made of them; but whoever owns
    what they lead to decides, so that must be the person, or root.
    """
    found = _read(file, 0)
    if found is not None and int(found.state.split(" ")[0]) not in (0, os.geteuid()):
        raise _unfit(file, "belongs to somebody else", "make a copy that is yours, after you have read it")
    return found


def _project(workspace: str) -> Text | None:
    """The project's file; never through a link, which could show any file of the person in an error."""
    return _read(os.path.join(workspace, PROJECT_FILE), os.O_NOFOLLOW, LARGEST_PROJECT)


def _read(file: str, flags: int, most: int = LARGEST_FILE) -> Text | None:
    """A regular file that not everybody may write, of `most` bytes; None where there is none.

    Its group may: with umask 002, as many systems have it, each person's own group may write all their files.
    O_NONBLOCK: opening a FIFO must not wait (open(2)).
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | flags)
    except FileNotFoundError:
        if os.path.islink(file) and not flags:
            raise _unfit(file, "is a link that leads nowhere", "mend the link, or remove it") from None
        return None
    except NotADirectoryError:
        return None
    except (OSError, ValueError) as error:
        raise _unfit(
            file, _why_closed(error, flags), "make it a readable file of yours, or remove it"
        ) from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise _unfit(file, "is not a regular file", "name the TOML file itself")
        if found.st_mode & stat.S_IWOTH:
            raise _unfit(
                file, "can be written by anybody", "look at what it says, then run `chmod o-w` on it"
            )
        content = _whole(descriptor, most)
    except OSError as error:
        raise _unfit(file, f"cannot be read: {error.strerror}", "look at its file system") from None
    finally:
        os.close(descriptor)
    if content is None:
        raise _unfit(file, f"is larger than {most >> 10} KiB", "name the TOML file of a policy")
    return Text(file, content, _state(found))


def state(file: str) -> str:
    """By what a change of `file` is seen without reading it: owner, mode, inode, size, time; "" for none."""
    try:
        return _state(os.stat(file))
    except OSError:
        return ""


def _state(found: os.stat_result) -> str:
    return f"{found.st_uid} {found.st_mode} {found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns}"


def _why_closed(error: OSError | ValueError, flags: int) -> str:
    if not isinstance(error, OSError):
        return "cannot be opened: no path holds a NUL character"
    if flags and error.errno == errno.ELOOP:
        return "is a symbolic link"
    return f"cannot be opened: {error.strerror}"


def _unfit(file: str, what: str, hint: str) -> JailError:
    return JailError(f"the policy {what}", where=file, hint=hint, code=EXIT_USAGE)


def _whole(descriptor: int, most: int) -> bytes | None:
    """All of a file, or None where it has more than `most` bytes, also if it grows meanwhile."""
    content = b""
    while len(content) <= most:
        part = os.read(descriptor, most + 1 - len(content))
        if not part:
            return content
        content += part
    return None
