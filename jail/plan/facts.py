"""What is true of this host, as values: gathered once for each run by launch/survey.py, read by
plan/build.py.

Rule: plans are made from these values alone, so that a plan can be printed, tested and compared without a
host. Paths are canonical (absolute, no symlink in them) unless a field says otherwise; text is str with
surrogateescape.
"""

from jail.light import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jail.plan.held import Wanted


class Place(NamedTuple):
    """One path that was looked at.

    `given` as the policy or the environment wrote it; `path` with every symlink but the last resolved; `kind`
    is `file`, `folder`, `symlink`, `socket`, `special` or `absent`; `real` with the last one resolved too, ""
    where that leads nowhere; `real_kind` the kind of `real`; `device` and `inode` identify `real`; `owner` is
    its uid. `strays`: a link on the way that a command may have laid, and that leads out of what that command
    was given, "" for none; `project`: a project's file names it, not the person.
    """

    given: str
    path: str
    kind: str
    real: str
    real_kind: str = "absent"
    device: int = 0
    inode: int = 0
    owner: int = -1
    strays: str = ""
    project: bool = False


class Guarded(NamedTuple):
    """A protected path: present ones get a mount, absent ones are watched. `kind` as in Place; `reason` from
    the table. `git`: only the host's git, or its shell, obeys it, so that in a held tree nobody does before
    it was applied; `verb`: "hold" where a copy may be written in its place, "pin" where it must stay where it
    is and may be written, else "read".
    """

    path: str
    kind: str
    reason: str
    git: bool = False
    verb: str = "read"


class Searched(NamedTuple):
    """A folder in which a shell of the host looks for commands. `given` as PATH has it; `ways`: its absolute
    path, as spelt and after each link was followed, the last canonical; `kind` of what is there; `links` on
    the way; `turns`: what `..` comes out of; `loose`: a folder that people work in, which is not held for it.
    """

    given: str
    ways: tuple[str, ...]
    kind: str
    links: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    loose: bool = False

    @property
    def real(self) -> str:
        """The canonical path."""
        return self.ways[-1]


class Repository(NamedTuple):
    """The git repository of the workspace: where its folders are, and what was refused of it ("" when
    nothing). `here`: its git dir lies in the workspace itself, so what is refused can still be written.
    `objects`: its folder of objects, "" where that is none or leads elsewhere.
    """

    gitdir: str
    commondir: str
    refused: str
    here: bool = False
    objects: str = ""


class Toolchain(NamedTuple):
    """One thing that PATH leads to outside of the system's folders, and what it needs.

    `part` is a name in TOOLCHAINS, "" where it belongs to none; `name` whose it is (a manager, a shape);
    `root` its folder; `through` the PATH entry and what led there from it; `given`: places, read-only;
    `secrets`: files and folders of it that are not given, or are hidden where a given one holds them;
    `known`: its layout is known, so that its trees are searched for sockets no more than the system's.
    """

    part: str
    name: str
    root: str
    through: str
    given: tuple[Place, ...]
    secrets: tuple[str, ...] = ()
    known: bool = True


class Tools(NamedTuple):
    """What PATH leads to. `links`: symbolic links on the way, path and text; `left`: PATH entries that are
    not given, and why; `variables`: environment names that these toolchains need; `pointers`: those that
    count only where every path in their value is given; `notes` for a person; `settings`: files to make, with
    path, text and why.
    """

    found: tuple[Toolchain, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    left: tuple[tuple[str, str], ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    pointers: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    settings: tuple[tuple[str, str, str], ...] = ()


class Gpu(NamedTuple):
    """GPU devices of the host, looked for only where the policy gives them: character devices in /dev, what
    drivers read in /sys, and the devices that the command's uid may not open.
    """

    devices: tuple[Place, ...] = ()
    read: tuple[Place, ...] = ()
    closed: tuple[str, ...] = ()


class Facts(NamedTuple):
    """Everything that a plan is made from.

    `uid`, `gid`, `user`: who the command will be; `launcher`: the effective uid that started jail;
    `idmap_from`: the owner of a root-owned workspace whose ids are mapped to `uid` (-1: no mapping). `path`:
    PATH of the launching environment, entry by entry; `searched`: what that is to a shell of the host;
    `tools`: what it leads to. `cache`: the workspace's own
    cache folder on the host, "" for none. `own`: places of jail's code, state, configuration and
    cache; `credentials`: places of the table that are there. `watch_folders`: where absent names are watched.
    `sockets` (and pipes), `hardlinked`: paths in given trees; `unseen`: trees too large to be seen whole.
    `enclosing`: a repository above the workspace. `proc`: names in /proc, of those that a plan
    covers. `landlock`: the ABI, 0 = absent;
    `landlock_lacks` in words. `namespaces`: kinds that this kernel has. `identity`, `branch`: for git, name
    and email, and init.defaultBranch. `quotas`: limits of kernel resources, by name. `open_files_hard`,
    `processes_hard`: the caller's limits, -1 is none. `cgroup`: the delegated control group of the host, ""
    and `no_cgroup`, why, where there is none. `memory_most`: bytes that the host and the control groups above
    leave to one who takes all of it, 0 where that is not known. `allowed`: (verb, place) of all that the
    person gives, where a project's file takes part. `hold`: places that the policy holds;
    `command_trees`: PATH folders in written trees, each with the tree that it is held with; `no_overlay`:
    (tree, why) of those that no overlay can hold here, and `sizes`: (tree, bytes, entries) of them;
    `submounts`: (path, kind) of mounts in trees that are to be held; `strange`: trees that are to be held and
    whose root is of another uid or gid than the command's. `held_names`: (path, name) of things that an
    earlier session holds, which this run goes on from. `wanted`: what jail.plan.held.wanted says of these
    facts, where it was asked already. `git_dirs`: what git takes for one in the trees that are written, with
    device and inode; `cut`: trees of which not all of them are known.
    """

    uid: int
    gid: int
    user: str
    launcher: int
    idmap_from: int
    home: str
    shell: str
    workspace: Place
    folder: str
    system: tuple[Place, ...]
    write: tuple[Place, ...]
    read: tuple[Place, ...]
    hide: tuple[Place, ...]
    path: tuple[Place, ...]
    tools: Tools
    cache: str
    gpu: Gpu
    repository: Repository | None
    guarded: tuple[Guarded, ...]
    absent: tuple[Guarded, ...]
    watch_folders: tuple[str, ...]
    sockets: tuple[str, ...]
    hardlinked: tuple[str, ...]
    unseen: tuple[str, ...]
    enclosing: str
    own: tuple[str, ...]
    credentials: tuple[str, ...]
    devices: tuple[str, ...]
    proc: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    identity: tuple[str, str]
    branch: str
    landlock: int
    landlock_lacks: tuple[str, ...]
    namespaces: tuple[str, ...]
    quotas: tuple[tuple[str, int], ...]
    open_files_hard: int
    processes_hard: int
    cgroup: str
    no_cgroup: str
    memory_most: int
    allowed: tuple[tuple[str, Place], ...] = ()
    hold: tuple[Place, ...] = ()
    no_overlay: tuple[tuple[str, str], ...] = ()
    sizes: tuple[tuple[str, int, int], ...] = ()
    searched: tuple[Searched, ...] = ()
    command_trees: tuple[tuple[str, str], ...] = ()
    submounts: tuple[tuple[str, str], ...] = ()
    strange: tuple[str, ...] = ()
    held_names: tuple[tuple[str, str], ...] = ()
    wanted: "tuple[Wanted, ...] | None" = None
    git_dirs: tuple[tuple[str, tuple[int, int]], ...] = ()
    cut: tuple[str, ...] = ()
