"""The policy as an immutable value, its digest, and the losses that it may accept.

Rule: on the launch path, so nothing slow is imported. What a field does not name is denied; a policy is
changed by `_replace`, which gives a copy.
"""

from jail.kernel.digest import sha256_hex
from jail.light import Final, NamedTuple

LOSSES: Final = {
    "landlock": "Landlock is missing, or too old to allow moves between folders (ABI 1)",
    "landlock-rights": "Landlock is older than ABI 6: it does not judge truncation, device ioctls or signals",
    "limits-memory": "no delegated control group: jail watches memory as a whole, the kernel does not",
    "hold": "a tree that is to be held can be neither overlaid nor copied: it is read-only inside",
    "cgroup-namespace": "no cgroup namespace: names of the host's control groups can be read inside",
}
"""Each wall that a host may be unable to give: the name that `accept.losses` takes → what is lost."""

TOOLCHAINS: Final = {
    "python": "pyenv, uv, pipx, conda",
    "node": "nvm, fnm, volta, n, corepack",
    "rust": "rustup, cargo",
    "go": "go, and what `go install` made",
    "java": "sdkman, jenv, maven, gradle",
    "ruby": "rbenv, rvm, gems",
    "cc": "compilers, linkers and their caches",
}
"""Each toolchain that `toolchains.use` takes → whose folders in the home folder are looked for."""

TERMINAL: Final = {
    "title": "the window's title may be set",
    "clipboard": "the person's clipboard may be written; it can never be read",
}
"""What `terminal.allow` takes → what escape sequences from inside may then do to the person's terminal."""

COMMANDS: Final = "commands"
GIT_CONFIG: Final = "git-config"
DELIVERIES: Final = {
    COMMANDS: "trees with PATH folders, but for what is refused, links that lead out of them, commands that "
    "shadow one of the launch PATH (and their removal), and what python runs at each start",
    GIT_CONFIG: "of a git config `branch.*.{remote,merge,rebase,pushRemote,description}`, "
    "`remote.*.{url,fetch}` and `submodule.*.{url,active}`, with plain values",
}
"""What `hold.deliver` takes → what is then delivered at the end of a run without being asked for."""


class Policy(NamedTuple):
    """What a run may do.

    Paths in `write`, `hold`, `read` and `hide` are absolute, `~/…` for the home folder, else relative to the
    workspace (such a name that begins with a tilde is written `./~…`). They are lexically clean: no `..`, no
    doubled or closing slash. Symbolic links are not followed here; who mounts looks at what they lead to.
    """

    name: str
    description: str
    system: tuple[str, ...]
    """Absolute host paths given read-only where the host has them."""
    write: tuple[str, ...]
    """The real thing, beside the workspace."""
    hold: tuple[str, ...]
    """Copy-on-write: what is written stays in the session; `.` is the whole workspace."""
    read: tuple[str, ...]
    """Read-only."""
    hide: tuple[str, ...]
    """Absent inside, also where a wider entry would show it."""
    toolchains: tuple[str, ...]
    """Names in TOOLCHAINS whose folders are found and given read-only."""
    gpu: bool
    """Whether the host's GPU devices are given."""
    pass_names: tuple[str, ...]
    """Environment names handed on from the caller; one closing `*` stands for any ending."""
    set_values: tuple[tuple[str, str], ...]
    """Environment (name, value) pairs set by the policy, sorted by name."""
    terminal: tuple[str, ...]
    """Names in TERMINAL: escape sequences that reach the person's terminal."""
    deliver: tuple[str, ...]
    """Names in DELIVERIES: of what is held, what is delivered at the end without being asked for."""
    memory_bytes: int
    """Most memory of everything inside together, in bytes."""
    processes: int
    """Most processes and threads (RLIMIT_NPROC, getrlimit(2))."""
    open_files: int
    """Most open file descriptors of one process (RLIMIT_NOFILE)."""
    tmp_bytes: int
    """Size of each tmpfs, in bytes."""
    held_bytes: int
    """Most bytes that the session keeps back on the host's disk, of what was moved away."""
    output_bytes: int
    """Most bytes that the command may print on its pipes or terminal."""
    timeout: float
    """Seconds until the run is ended; 0 is never."""
    accept: tuple[str, ...]
    """Names in LOSSES that this run may go without."""
    sources: tuple[tuple[str, str], ...]
    """(file, SHA-256 of its content in hex) for each file that this value was read from."""
    allowed: tuple[tuple[str, str], ...] = ()
    """(verb, path) of all that the person gives, where a project's file takes part, else empty: what that
    file names is judged by it again, once links are followed; `.` is the workspace.
    """

    @property
    def digest(self) -> str:
        """SHA-256, in hex, over a canonical rendering of every field.

        ascii() quotes every string, and unlike repr() it does not depend on the interpreter's Unicode tables.
        `allowed` is left out where no project's file takes part.
        """
        fields = (pair for pair in self._asdict().items() if pair != ("allowed", ()))
        return sha256_hex(ascii(tuple(fields)).encode("ascii"))
