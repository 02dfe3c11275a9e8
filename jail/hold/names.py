r"""Names that are never applied, whatever is in them: each would be another thing on the host than in a list.

Refused: what leads out or nowhere (`..`, `.`, empty, NUL); what a person or a tool that reads lists by line
takes for something else (newline and every other control character, C0, DEL and C1, which a terminal may
obey); what the kernel cannot open by one path, and so no ordinary tool either; `.git` as some other file
system or git itself would read it; what our own applying is called while it works; kinds that are no content
(sockets, FIFOs, devices).

Allowed: bytes that are not UTF-8, and invisible or reordering characters elsewhere than in `.git`. File
systems know bytes only, such names are ordinary in test suites and old archives, and every list of ours shows
them escaped. What is deleted may have control characters in its name: nothing comes of it.
"""

import os
import unicodedata
from functools import lru_cache

from jail.hold.change import State
from jail.light import Final
from jail.plan.protected import canonical

PATH_BYTES: Final = 4095
"""PATH_MAX of <linux/limits.h> without its NUL."""
NAME_BYTES: Final = 255
"""NAME_MAX of <linux/limits.h>."""
STAGING_PREFIX: Final = ".jail-apply-"
"""How the folder begins in which changes are made ready (hold/apply.py)."""
_CONTROL: Final = frozenset(map(chr, [*range(0x20), *range(0x7F, 0xA0)]))
_KINDS: Final = {
    "socket": "a socket",
    "special": "a FIFO or device",
    "unknown": "a thing of which nobody knows what it is",
}


def complaint(path: str, new: State) -> str:
    """Why a change of `path` (relative to its held tree, "" the tree itself) that leaves `new` there is
    never applied; "" when it may be.
    """
    if new.kind in _KINDS:
        return f"{_KINDS[new.kind]}, which is never applied"
    if new.kind == "file" and not new.digest:
        return "a file too large to be compared"
    if not path:
        return ""
    if is_too_long(path):
        return f"a path of more than {PATH_BYTES} bytes"
    folder, slash, name = path.rpartition("/")
    made = new.kind != "absent"
    return (_of_folder(folder, made=made) if slash else "") or _wrong(name, made=made)


@lru_cache(maxsize=256)
def _of_folder(path: str, *, made: bool) -> str:
    """Asked again and again for the folder that a sorted list is in, however deep it is."""
    return next((wrong for name in path.split("/") if (wrong := _wrong(name, made=made))), "")


def is_too_long(path: str) -> bool:
    """Whether a path is past PATH_BYTES."""
    return len(path) * 4 > PATH_BYTES and len(os.fsencode(path)) > PATH_BYTES


def _wrong(name: str, *, made: bool) -> str:
    if name in ("", ".", "..") or "\0" in name:
        return "no name that a file can have"
    if len(os.fsencode(name)) > NAME_BYTES:
        return f"a name of more than {NAME_BYTES} bytes"
    if made and not _CONTROL.isdisjoint(name):
        return "a newline or other control character in its name"
    if name != ".git" and _is_git(name):
        return "another spelling of .git, which some file systems and git take for it"
    if canonical(name).startswith(STAGING_PREFIX):
        return "a name that jail uses while it applies"
    return ""


def _is_git(name: str) -> bool:
    """As git's path.c, is_ntfs_dotgit: a backslash parts names there, a colon begins a stream's. Full-width
    and other compatibility forms count too (NFKC): code pages of Windows map them to ASCII.
    """
    folded = unicodedata.normalize("NFKC", name)
    return any(canonical(part.partition(":")[0]) == ".git" for part in folded.split("\\"))
