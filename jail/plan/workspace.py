"""Which folders are no workspace: home, the system's places, jail's own, credentials, protected ones.

Rule: judged from names alone, so that it can be asked before any tree is walked.
"""

from jail.light import Final
from jail.plan.facts import Place
from jail.plan.protected import is_protected_name
from jail.plan.trees import refusal
from jail.plan.withheld import withheld
from jail.policy.paths import beneath, overlaps

SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - the name of a folder inside
RESERVED_WHOLE: Final = tuple(
    "/proc /sys /dev /etc /boot /bin /sbin /lib /lib32 /lib64 /libx32 "
    "/usr/bin /usr/sbin /usr/lib /usr/libexec".split()
)
"""Places of the system that are no workspace and no home, with all that lies in them."""
RESERVED: Final = frozenset(
    "/ /usr /usr/local /usr/share /usr/src /opt /var /run /home /tmp /var/tmp /var/lib /srv /mnt /media "
    "/nix".split()
)
"""Places that are shared by many: one folder in them may be a workspace, the place itself not."""


def refuse_workspace(
    workspace: Place, home: str, own: tuple[str, ...], credentials: tuple[str, ...], system: tuple[Place, ...]
) -> None:
    """Raise JailError for a workspace that must not be given; cheap, so that it can come before any walk."""
    where = f"workspace {workspace.real or workspace.given}"
    hint = "start jail in one project's folder, or name it with --workspace"
    if workspace.real_kind != "folder":
        raise refusal("the workspace is not a folder", where, hint)
    path = workspace.real
    reserved = "is a place of the system" if is_reserved(path) else ""
    if why := withheld(path, home, own, credentials, overlaps) or reserved:
        raise refusal(f"the workspace {why}", where, hint)
    for place in system:
        if beneath(place.path, path):
            raise refusal(f"the workspace holds the system's {place.path}", where, hint)
    for name in path.split("/"):
        row = is_protected_name(name)
        if row is not None:
            raise refusal(f"the workspace lies in {name}, which is protected: {row.reason}", where, hint)
    if is_reserved(home):
        raise refusal(
            f"the home folder {home} is a place of the system", "HOME", "set HOME to a folder of yours"
        )


def is_reserved(path: str) -> bool:
    """Whether `path` is one of the system's places, or lies in one whose content is the system's too."""
    if path != SHARED_MEMORY and beneath(path, SHARED_MEMORY):
        return False
    return path in RESERVED or any(beneath(path, folder) for folder in RESERVED_WHOLE)
