"""Where a session keeps what it holds, and the manifest that says what that is.

Rule: all of it lies in the folder `held` of the session, which nothing inside can name:

    manifest          what is held, of which workspace, for whom: one JSON object
    NAME/upper, work  the upper layer of an overlay, as the kernel makes it
    NAME/tree         the copy of a tree that no overlay can hold
    files/NAME/BASE   the copy of one file that the command may change, under its own name
    base/NAME         what was there when the run began: of a tree a snapshot (hold/base.py), of a file its
                      content
    journal           what `jail apply` is doing (hold/journal.py); there while it is not done

The manifest is written before anything inside runs; who reads it later trusts it as the session's ledger is
trusted. Written without `json`, which a launch does not import.
"""

import errno
import os
import stat

from jail.errors import JailError
from jail.kernel import files, writing
from jail.ledger.entries import encode
from jail.light import Final, NamedTuple, suppress
from jail.plan.held import BASE, COPY, FILE, FILES, KEPT_BITS, OVERLAY, TREE, UPPER, WORK, Held

FOLDER: Final = "held"
MANIFEST: Final = "manifest"
MANIFEST_BYTES: Final = 16 << 20
"""A manifest is read whole; ours have a few hundred bytes for each thing held."""
FILE_BYTES: Final = 64 << 20
"""The largest single file that is held: it is copied twice before each run, and read whole for that."""


class Manifest(NamedTuple):
    """`session`: id; `workspace`: canonical; `uid`, `gid`: of the command; `idmap_from`: as jail.plan.facts;
    `started_ns`: when the run began, nanoseconds since the epoch, some 20 ms early; `path`: the folders of
    the launch PATH, canonical; `held`: the things; `resumed`: the session that it went on from, "" for none;
    `unasked`: names of the things of which something may be delivered at the end without being asked for;
    `guarded`: (path, why) of what the launch found that some program of the host obeys, there or absent.
    Each field has a rule for runs that go on from another (jail.hold.grown).
    """

    session: str
    workspace: str
    uid: int
    gid: int
    idmap_from: int
    started_ns: int
    path: tuple[str, ...]
    held: tuple[Held, ...]
    resumed: str = ""
    unasked: tuple[str, ...] = ()
    guarded: tuple[tuple[str, str], ...] = ()


def folder_of(session_folder: str) -> str:
    """The `held` folder of a session's folder."""
    return f"{session_folder}/{FOLDER}"


def write_manifest(held_folder: str, manifest: Manifest) -> None:
    """Write the manifest, whole or not at all. Raises OSError."""
    values = {**manifest._asdict(), "held": [thing._asdict() for thing in manifest.held]}
    content = encode(values).encode("ascii") + b"\n"
    partial, final = f"{held_folder}/{MANIFEST}.new", f"{held_folder}/{MANIFEST}"
    fd = writing.create(partial, os.O_TRUNC)
    try:
        writing.write_all(fd, content)
    finally:
        os.close(fd)
    os.replace(partial, final)


class Copied(NamedTuple):
    """`size`: bytes that copies of trees take on the disk; `left_out`: paths of what is not in them, of each
    the first copies.LEFT_OUT.
    """

    size: int
    left_out: tuple[str, ...]


def prepare(held_folder: str, held: tuple[Held, ...], started_ns: int, owner: tuple[int, int]) -> Copied:
    """Make what each held thing needs: the folders of an overlay, or the copy with its base.

    `owner`: uid and gid of who writes them, (-1, -1) for ourselves; `started_ns` as in copies.make. Raises
    OSError, EFBIG for a tree that is past the bounds of a copy.
    """
    size, left_out = 0, list[str]()
    for thing in held:
        folder = f"{held_folder}/{thing.name}"
        if thing.kind not in _PARTS:
            continue
        for path in (folder, *(f"{folder}/{name}" for name in _PARTS[thing.kind])):
            os.mkdir(path, 0o700)
            os.chown(path, *owner)
        if thing.kind == OVERLAY:
            # Else the layer of a run that was never made would look as if the mode had been changed.
            os.chmod(f"{folder}/{UPPER}", stat.S_IMODE(os.stat(thing.path).st_mode) & KEPT_BITS)
        if thing.kind == COPY:
            base = f"{held_folder}/{BASE}/{thing.name}"
            copied = _copy(thing.path, f"{folder}/{TREE}", base, started_ns, owner)
            size += copied.size
            left_out += [f"{thing.path}/{name}" for name in copied.left_out]
    alone = tuple(thing for thing in held if thing.kind == FILE)
    if alone:
        prepare_files(held_folder, alone, owner)
    return Copied(size, tuple(left_out))


_PARTS: Final[dict[str, tuple[str, ...]]] = {OVERLAY: (UPPER, WORK), COPY: (TREE,)}


def _copy(tree: str, target: str, base: str, started_ns: int, owner: tuple[int, int]) -> Copied:
    from jail.hold import copies  # most trees are held by an overlay
    from jail.kernel.trees import TooLargeError

    fds = [files.openat2(-1, path, files.FOLDER, files.RESOLVE_NO_SYMLINKS) for path in (tree, target)]
    try:
        return copies.make(fds[0], fds[1], base, started_ns, owner)
    except TooLargeError:
        raise OSError(errno.EFBIG, "it has grown too large since it was weighed", tree) from None
    finally:
        for fd in fds:
            os.close(fd)


def prepare_files(held_folder: str, held: tuple[Held, ...], owner: tuple[int, int]) -> None:
    """Copy each held file into files/NAME and base/NAME; both have the same content, whatever the host does
    meanwhile, and its mode. `owner`: uid and gid of the copy that the command may write, (-1, -1) for our
    own. Raises OSError where the file is not regular, readable, and of FILE_BYTES at most.
    """
    with suppress(FileExistsError):  # a run that goes on from another may hold more files
        os.mkdir(f"{held_folder}/{FILES}", 0o700)
    os.chown(f"{held_folder}/{FILES}", *owner)
    for thing in held:
        content, mode = _read(thing.path)
        mode = stat.S_IMODE(mode) & 0o777
        _write(f"{held_folder}/{BASE}/{thing.name}", content, mode | 0o400, (-1, -1))
        folder = f"{held_folder}/{FILES}/{thing.name}"
        os.mkdir(folder, 0o700)
        os.chown(folder, *owner)
        _write(f"{folder}/{thing.path.rpartition('/')[2]}", content, mode, owner)


def _read(path: str) -> tuple[bytes, int]:
    fd = files.openat2(-1, path, files.FILE, files.RESOLVE_NO_SYMLINKS)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.ESTALE, "it changed since it was looked at", path)
        if found.st_size > FILE_BYTES:
            raise OSError(errno.EFBIG, f"a file that is held has {FILE_BYTES} bytes at most", path)
        content = b""
        while chunk := os.read(fd, FILE_BYTES + 1 - len(content)):
            content += chunk
        return content, found.st_mode
    finally:
        os.close(fd)


def differs(held_folder: str, thing: Held) -> bool:
    """Whether the copy of a held file is not its base, byte for byte. Raises OSError."""
    copy = f"{held_folder}/{FILES}/{thing.name}/{thing.path.rpartition('/')[2]}"
    fds: list[int] = []
    try:
        fds.extend(os.open(path, files.FILE) for path in (copy, f"{held_folder}/{BASE}/{thing.name}"))
        while True:
            first, second = (os.read(fd, _CHUNK) for fd in fds)
            if first != second or not first:
                return first != second
    finally:
        for fd in fds:
            os.close(fd)


_CHUNK: Final = 1 << 20


def _write(path: str, content: bytes, mode: int, owner: tuple[int, int]) -> None:
    fd = writing.create(path)
    try:
        os.fchown(fd, *owner)
        os.fchmod(fd, mode)  # past the umask
        writing.write_all(fd, content)
    finally:
        os.close(fd)


def read_manifest(session_folder: str) -> Manifest | None:
    """The manifest of a session, or None where it holds nothing. Raises JailError for one that cannot be
    read.
    """
    import json

    path = f"{folder_of(session_folder)}/{MANIFEST}"
    try:
        fd = os.open(path, files.FILE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    try:
        with os.fdopen(fd, "rb") as file:
            values = json.loads(file.read(MANIFEST_BYTES))
        things = tuple(Held(**{**thing, "commands": tuple(thing["commands"])}) for thing in values["held"])
        guarded = tuple((str(path), str(why)) for path, why in values.get("guarded", ()))
        lists = {name: tuple(values.get(name, ())) for name in ("path", "unasked")}
        return Manifest(**{**values, **lists, "held": things, "guarded": guarded})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise _unreadable(path, str(error)) from error


def _unreadable(path: str, why: str) -> JailError:
    return JailError(
        "the list of what this session holds cannot be read",
        where=f"{path}: {why}",
        hint="what is held lies beside it, unchanged; nothing was applied",
    )
