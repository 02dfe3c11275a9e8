"""What is mounted for what a run holds: an overlay or a copy over a tree, a link of jail's own over a file.

Rule: nothing inside can name what lies in the session, and nothing here walks a path that anybody inside may
have laid: every layer is an fd of a folder that was opened in the session, which the command never sees.
Where root starts jail, the session's folder is closed to the command's uid: what is needed of it was opened
before root gave up its rights, as a detached mount, as a layer must be a mount of the jail's own namespace.
A link of jail's own leads nowhere, or to a copy in the session: nobody inside can remove a mounted link,
replace it, or write through it to what it covers. Where it leads is jail's to say: it lies in a folder that
is read-only before the command starts.
"""

import os
import stat

from jail.errors import bug
from jail.kernel import files, mounts
from jail.light import TYPE_CHECKING, Callable, Final
from jail.plan.held import FILES, KEPT_BITS, TREE, UPPER, WORK, link_to
from jail.plan.steps import Step

if TYPE_CHECKING:
    from jail.launch.steps import Build

_SAFE: Final = mounts.ATTR_NOSUID | mounts.ATTR_NODEV
_READ_ONLY: Final = _SAFE | mounts.ATTR_RDONLY
_LAYERS: Final = ".held"
"""Where the layers are mounted in the new root, for as long as an overlay is being made of them."""
_BENEATH: Final = files.RESOLVE_BENEATH | files.RESOLVE_NO_SYMLINKS | files.RESOLVE_NO_MAGICLINKS
_IN_ROOT: Final = files.RESOLVE_IN_ROOT | files.RESOLVE_NO_SYMLINKS | files.RESOLVE_NO_MAGICLINKS


def open_source(build: "Build", step: Step) -> int:
    """A detached mount of what the session has for a step of TREES: of an overlay its layers, of a copy the
    copy.
    """
    if not build.held:
        raise bug("a plan that holds something, and no folder to hold it in")
    path = f"{build.held}/{step.options[0]}"
    path = f"{path}/{TREE}" if step.verb == "copy" else path
    fd = files.open_path(path)
    try:
        tree = mounts.clone(fd, path, recursive=False)
    finally:
        os.close(fd)
    mounts.set_attributes(tree, _SAFE, path)
    return tree


def overlay(build: "Build", step: Step) -> None:
    """Copy-on-write over what is there."""
    lower = build.inside(step.target, os.O_PATH | os.O_DIRECTORY)
    held = build.source(step)
    try:
        tree = _overlay(build, lower, held)
    finally:
        os.close(held)
    mounts.attach(tree, lower, step.target)
    os.close(tree)
    os.close(lower)


def _overlay(build: "Build", lower: int, held: int) -> int:
    """An overlay of layers that are mounted for no longer than it takes to make it."""
    os.mkdir(_LAYERS, 0o700, dir_fd=build.root)
    try:
        place = build.inside(f"/{_LAYERS}")
        mounts.attach(held, place, _LAYERS)
        os.close(place)
        upper, work = (
            files.openat2(held, name, os.O_PATH | os.O_DIRECTORY, _BENEATH) for name in (UPPER, WORK)
        )
        try:
            _liken(upper, lower)
            return mounts.overlay(lower, upper, work)
        finally:
            os.close(upper)
            os.close(work)
            mounts.detach(held, _LAYERS)
    finally:
        os.rmdir(_LAYERS, dir_fd=build.root)


def _liken(upper: int, lower: int) -> None:
    """The root of the upper layer is the root that is seen: it gets mode and time of the lower one's.

    Its owner is the command, and could be nobody else here. Once only: a session that goes on has what the
    command made of it.
    """
    if os.listdir(f"/proc/self/fd/{upper}"):
        return
    found, path = os.fstat(lower), f"/proc/self/fd/{upper}"
    os.chmod(path, stat.S_IMODE(found.st_mode) & KEPT_BITS)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def copy(build: "Build", step: Step) -> None:
    """The session's copy, in place of what is there."""
    place = build.inside(step.target, os.O_PATH | os.O_DIRECTORY)
    tree = build.source(step)
    mounts.attach(tree, place, step.target)
    os.close(tree)
    os.close(place)


def lead_away(root: int, place: int, link: str, what: str) -> None:
    """Cover the file at `place`, an O_PATH fd, with the link `link` of the new root."""
    source = files.openat2(root, link, os.O_PATH | os.O_NOFOLLOW, _IN_ROOT)
    try:
        tree = mounts.clone(source, what)
    finally:
        os.close(source)
    mounts.set_attributes(tree, _READ_ONLY, what)
    mounts.attach(tree, place, what)
    os.close(tree)


def source_of(build: "Build", step: Step) -> str:
    """Where on the host a step's source lies; that of held files is known when there is a session."""
    return f"{build.held}/{FILES}" if step.verb == "held-files" else step.source


def _held_files(build: "Build", step: Step) -> None:
    """The folder of the session whose files the command may change."""
    tree = build.source(step)
    build.put(tree, step.target)
    os.close(tree)


def _held_file(build: "Build", step: Step) -> None:
    """A file whose reads and writes go to a copy in the session."""
    place = build.inside(step.target)
    lead_away(build.root, place, link_to(step.options[0]), step.target)
    os.close(place)


TREES: Final[dict[str, "Callable[[Build, Step], None]"]] = {"overlay": overlay, "copy": copy}
"""Verb → function, of the steps that put another tree in the place of one."""
TABLE: Final[dict[str, "Callable[[Build, Step], None]"]] = {
    **TREES,
    "held-files": _held_files,
    "held-file": _held_file,
}
"""Verb → function, a part of the table of launch/steps.py."""
