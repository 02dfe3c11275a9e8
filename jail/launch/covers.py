"""Links of jail's own, mounted over files of the workspace: one leads nowhere, one to a copy in the session.

Rule: nobody inside can remove a mounted link, replace it, or write through it to what it covers. Where it
leads is jail's to say: it lies in a folder that is read-only before the command starts.
"""

import os

from jail.kernel import files, mounts
from jail.light import TYPE_CHECKING, Callable, Final
from jail.plan import held_files
from jail.plan.held import FILES
from jail.plan.steps import Step

if TYPE_CHECKING:
    from jail.launch.steps import Build

_RESOLVE: Final = files.RESOLVE_IN_ROOT | files.RESOLVE_NO_SYMLINKS | files.RESOLVE_NO_MAGICLINKS
_ATTRIBUTES: Final = mounts.ATTR_NOSUID | mounts.ATTR_NODEV | mounts.ATTR_RDONLY


def lead_away(root: int, place: int, link: str, what: str) -> None:
    """Cover the file at `place`, an O_PATH fd, with the link `link` of the new root."""
    source = files.openat2(root, link, os.O_PATH | os.O_NOFOLLOW, _RESOLVE)
    try:
        tree = mounts.clone(source, what)
    finally:
        os.close(source)
    mounts.set_attributes(tree, _ATTRIBUTES, what)
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
    lead_away(build.root, place, held_files.link(step.options[0]), step.target)
    os.close(place)


TABLE: Final[dict[str, "Callable[[Build, Step], None]"]] = {
    "held-files": _held_files,
    "held-file": _held_file,
}
"""Verb → function, a part of the table of launch/steps.py."""
