"""The one table verb → function: what a plan says is done here, step by step, and nothing else is.

Who runs this: the keeper, alone, single-threaded, in the new user and mount namespaces; no command runs yet.
Sources are opened on the host's view and must still be the inode that the survey saw; targets are resolved
beneath the new root, which no symlink can leave.
"""

import errno
import os
import stat

from jail.errors import bug
from jail.kernel import files, libc, mounts, namespaces, netlink
from jail.launch import heldsteps
from jail.light import Callable, Final
from jail.plan.inside import ABSENT, EMPTY_FILE, EMPTY_FOLDER
from jail.plan.steps import Plan, Step

_RESOLVE: Final = files.RESOLVE_IN_ROOT | files.RESOLVE_NO_SYMLINKS | files.RESOLVE_NO_MAGICLINKS
SAFE: Final = mounts.ATTR_NOSUID | mounts.ATTR_NODEV
READ_ONLY: Final = SAFE | mounts.ATTR_RDONLY
_DEVICE: Final = mounts.ATTR_NOSUID | mounts.ATTR_NOEXEC
_HIDDEN_FOLDER: Final = ".hidden-folder"
DEVICE_NUMBERS: Final = {
    "/dev/null": (1, 3),
    "/dev/zero": (1, 5),
    "/dev/full": (1, 7),
    "/dev/random": (1, 8),
    "/dev/urandom": (1, 9),
    "/dev/tty": (5, 0),
}
"""Documentation/admin-guide/devices.txt of the kernel: a path in /dev that is something else is refused."""


class Build:
    """The walls as they rise.

    `root`: fd of the new root; `trees`: given trees by target → fd of the writable mount's root; `kept`: the
    same trees' read-only mounts, covered by the former, from which what is lost is restored; `donated`:
    detached mounts that root opened before it gave up its rights, by (source, mode); `identities`: source →
    the inode that the survey saw; `held`: where the session holds things, "" for nowhere.
    """

    def __init__(
        self, plan: Plan, identities: dict[str, files.Identity], loopback: bytes, held: str = ""
    ) -> None:
        self.plan = plan
        self.identities = identities
        self.loopback = loopback
        self.held = held
        self.donated: dict[tuple[str, str], int] = {}
        self.root = -1
        self.trees: dict[str, int] = {}
        self.kept: dict[str, int] = {}
        self.proc_mount: Callable[[], int] | None = None

    def run(self, step: Step) -> None:
        """Do one step; raises OSError (KernelError names the call)."""
        TABLE[step.verb](self, step)

    def source(self, step: Step) -> int:
        """The detached mount that a step shows, opened now unless root opened it before."""
        tree = self.donated.pop((step.source, step.options[0]), -1)
        return tree if tree >= 0 else self.open_source(step)

    def open_source(self, step: Step, idmap: int = -1) -> int:
        """A detached mount of a step's source, read-only unless the step says `rw`."""
        if step.verb in heldsteps.TREES:
            return heldsteps.open_source(self, step)
        source = heldsteps.source_of(self, step)
        fd = files.open_path(source, self.identities.get(source))
        try:
            tree = mounts.clone(fd, source)
        finally:
            os.close(fd)
        attributes = SAFE if step.options[0] == "rw" else READ_ONLY
        mounts.set_attributes(tree, attributes, source, idmap=idmap)
        return tree

    def inside(self, path: str, flags: int = os.O_PATH) -> int:
        """An fd of `path` in the new root, a trailing symlink itself included."""
        return files.openat2(self.root, path, flags | os.O_NOFOLLOW, _RESOLVE)

    def place_for(self, tree: int, target: str) -> int:
        """An fd of `target` to mount `tree` on, made as a folder or file where there is none."""
        if stat.S_ISDIR(os.fstat(tree).st_mode):
            return files.make_folders(self.root, target)
        return files.make_file(self.root, target)

    def put(self, tree: int, target: str) -> None:
        """Mount `tree` at `target`."""
        place = self.place_for(tree, target)
        mounts.attach(tree, place, target)
        os.close(place)

    def over_itself(self, target: str, attributes: int) -> None:
        """Mount what is at `target` over itself, with attributes set before it can be reached."""
        place = self.inside(target)
        mount_over(place, place, attributes, target)
        os.close(place)


def mount_over(place: int, source: int, attributes: int, what: str) -> None:
    """Mount a copy of what is at `source` on `place`; both O_PATH fds."""
    tree = mounts.clone(source, what)
    mounts.set_attributes(tree, attributes, what)
    mounts.attach(tree, place, what)
    os.close(tree)


def _namespaces(build: Build, step: Step) -> None:
    """Leave the host's namespaces for new ones."""
    namespaces.unshare(step.options)
    mounts.make_all_private()


def _map(build: Build, step: Step) -> None:
    """Map one uid and one gid, each to itself."""
    namespaces.map_ids(build.plan.uid, build.plan.gid)


def _root(build: Build, step: Step) -> None:
    """A new, empty root folder."""
    build.root = mounts.new_filesystem("tmpfs", _filesystem_options(step), SAFE)
    # On top of the host's root, which every path of this process still starts from until pivot_root(2).
    place = os.open("/", os.O_PATH | os.O_CLOEXEC)
    mounts.attach(build.root, place, "/")
    os.close(place)


def _filesystem_options(step: Step) -> dict[str, str | None]:
    pairs = [option.partition("=") for option in step.options]
    return {key: value or None for key, _, value in pairs}


def _tmpfs(build: Build, step: Step) -> None:
    """An empty private folder in memory."""
    attributes = SAFE | (mounts.ATTR_NOEXEC if step.target == "/dev" else 0)
    tree = mounts.new_filesystem("tmpfs", _filesystem_options(step), attributes)
    build.put(tree, step.target)
    os.close(tree)


def _bind(build: Build, step: Step) -> None:
    """Show a folder or file of the host."""
    tree = build.source(step)
    build.put(tree, step.target)
    if step.options[0] == "rw":
        build.trees[step.target] = tree
    else:
        os.close(tree)


def _cache(build: Build, step: Step) -> None:
    """A folder of jail's own that the command may fill for later runs."""
    tree = build.source(step)
    build.put(tree, step.target)
    os.close(tree)


def _keep(build: Build, step: Step) -> None:
    """A read-only copy of a tree's mount, kept out of reach, from which lost mounts are restored."""
    tree = build.source(step)
    build.put(tree, step.target)
    build.kept[step.target] = tree


def _pin(build: Build, step: Step) -> None:
    """A folder that cannot be renamed."""
    if "made" in step.options:
        os.close(files.make_folders(build.root, step.target))
    build.over_itself(step.target, SAFE)


def _protect(build: Build, step: Step) -> None:
    """Read-only inside a writable tree."""
    build.over_itself(step.target, READ_ONLY)


def _hide(build: Build, step: Step) -> None:
    """Absent inside a given tree."""
    try:
        place = build.inside(step.target)
    except FileNotFoundError:
        if "if-there" in step.options:  # jail's own folder: this run has not made it, so it holds nothing
            return
        raise
    if stat.S_ISDIR(os.fstat(place).st_mode):
        _hide_folder(build, place, step.target)
    else:
        heldsteps.lead_away(build.root, place, ABSENT, step.target)
    os.close(place)


def _hide_folder(build: Build, place: int, what: str) -> None:
    """Cover a folder with one that is then removed: nothing can be found or made in it."""
    os.mkdir(_HIDDEN_FOLDER, 0o555, dir_fd=build.root)
    try:
        source = build.inside(f"/{_HIDDEN_FOLDER}")
        mount_over(place, source, READ_ONLY, what)
        os.close(source)
    finally:
        os.rmdir(_HIDDEN_FOLDER, dir_fd=build.root)


def _link(build: Build, step: Step) -> None:
    """A symbolic link."""
    head, _, name = step.target.rpartition("/")
    folder = files.make_folders(build.root, head)
    try:
        os.symlink(step.source, name, dir_fd=folder)
    except FileExistsError:
        if os.readlink(name, dir_fd=folder) != step.source:
            raise
    finally:
        os.close(folder)


def _file(build: Build, step: Step) -> None:
    """A file that jail writes."""
    head, _, name = step.target.rpartition("/")
    folder = files.make_folders(build.root, head)
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(name, flags, 0o444, dir_fd=folder)
    try:
        _write_all(fd, step.source.encode("utf-8", "surrogateescape"))
        os.fchmod(fd, 0o444)
    finally:
        os.close(fd)
        os.close(folder)


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _device(build: Build, step: Step) -> None:
    """A device of the host that holds no state, or a GPU that the survey has judged."""
    judged = build.identities[step.source] if "gpu" in step.options else None
    fd = files.open_path(step.source, judged)
    try:
        found = os.fstat(fd)
        numbers = (os.major(found.st_rdev), os.minor(found.st_rdev))
        known = judged is not None or numbers == DEVICE_NUMBERS[step.target]
        if not stat.S_ISCHR(found.st_mode) or not known:
            raise OSError(
                errno.ENODEV, f"{step.source} is not the device that it should be (it has numbers {numbers})"
            )
        tree = mounts.clone(fd, step.source, recursive=False)
    finally:
        os.close(fd)
    mounts.set_attributes(tree, _DEVICE, step.source)
    build.put(tree, step.target)
    os.close(tree)


def _proc(build: Build, step: Step) -> None:
    """Processes of this jail alone."""
    if build.proc_mount is None:
        raise bug("no process in the new pid namespace to mount /proc")
    tree = build.proc_mount()
    build.put(tree, step.target)
    os.close(tree)


def _mask(build: Build, step: Step) -> None:
    """An empty file or folder over what tells of the host."""
    place = build.inside(step.target)
    source = build.inside(EMPTY_FOLDER if stat.S_ISDIR(os.fstat(place).st_mode) else EMPTY_FILE)
    mount_over(place, source, READ_ONLY, step.target)
    os.close(source)
    os.close(place)


def _quota(build: Build, step: Step) -> None:
    """A limit of a kernel resource for the processes inside (namespaces(7), /proc/sys/user)."""
    fd = build.inside(step.target, os.O_WRONLY)
    try:
        files.require_procfs(fd, step.target)
        libc.named(f"write({step.target}, {step.options[0]})", os.write, fd, step.options[0].encode())
    finally:
        os.close(fd)


def _folder(build: Build, step: Step) -> None:
    """An empty folder."""
    os.close(files.make_folders(build.root, step.target))


def _freeze(build: Build, step: Step) -> None:
    """Read-only from here on."""
    place = build.inside(step.target)
    mounts.set_attributes(place, mounts.ATTR_RDONLY, step.target, recursive=False)
    os.close(place)


def _devpts(build: Build, step: Step) -> None:
    """Terminals of this jail alone."""
    tree = mounts.new_filesystem("devpts", _filesystem_options(step), mounts.ATTR_NOSUID | mounts.ATTR_NOEXEC)
    build.put(tree, step.target)
    os.close(tree)


def _pivot(build: Build, step: Step) -> None:
    """Make the new root the only one; the host's is gone."""
    mounts.pivot_into(build.root)


def _loopback(build: Build, step: Step) -> None:
    """Bring up the loopback interface, the only one."""
    netlink.send(build.loopback, "loopback up")


def _hostname(build: Build, step: Step) -> None:
    """Set the host name."""
    netlink.set_hostname(step.target)


TABLE: Final[dict[str, Callable[[Build, Step], None]]] = {
    "namespaces": _namespaces,
    "map": _map,
    "root": _root,
    "tmpfs": _tmpfs,
    "bind": _bind,
    "keep": _keep,
    **heldsteps.TABLE,
    "cache": _cache,
    "pin": _pin,
    "protect": _protect,
    "hide": _hide,
    "link": _link,
    "file": _file,
    "device": _device,
    "proc": _proc,
    "mask": _mask,
    "folder": _folder,
    "quota": _quota,
    "freeze": _freeze,
    "devpts": _devpts,
    "pivot": _pivot,
    "loopback": _loopback,
    "hostname": _hostname,
}
