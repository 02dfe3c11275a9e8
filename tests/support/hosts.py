"""A host as plain facts, so that plans can be tested without one."""

from typing import Any

from jail.plan.facts import Facts, Gpu, Guarded, Place, Repository, Tools
from jail.policy.value import Policy

WORKSPACE = "/home/ada/src/engine"
HOME = "/home/ada"


def folder(path: str, **fields: Any) -> Place:
    """A folder that is where it says."""
    return Place(path, path, "folder", path, "folder", 1, 2, fields.pop("owner", 1000))._replace(**fields)


def file(path: str) -> Place:
    """A regular file that is where it says."""
    return folder(path)._replace(kind="file", real_kind="file")


def link(path: str, target: str) -> Place:
    """A symbolic link to a folder."""
    return Place(path, path, "symlink", target, "folder", 1, 3, 0)


def absent(path: str) -> Place:
    """Nothing."""
    return Place(path, path, "absent", "")


POLICY = Policy(
    name="overnight",
    description="for tests",
    system=("/usr", "/bin", "/etc/ssl/certs", "/etc/localtime"),
    write=(),
    hold=(),
    read=(),
    hide=(),
    toolchains=(),
    gpu=False,
    pass_names=("TERM", "LC_*"),
    set_values=(),
    terminal=(),
    deliver=(),
    memory_bytes=8 << 30,
    processes=4096,
    open_files=65536,
    tmp_bytes=2 << 30,
    held_bytes=1 << 30,
    output_bytes=1 << 30,
    timeout=43200.0,
    accept=("limits-memory", "landlock-rights"),
    sources=(("/usr/share/jail/overnight.toml", "0" * 64),),
)

FACTS = Facts(
    uid=1000,
    gid=1000,
    user="ada",
    launcher=1000,
    idmap_from=-1,
    home=HOME,
    shell="/bin/bash",
    workspace=folder(WORKSPACE),
    folder=f"{WORKSPACE}/notes",
    system=(folder("/usr"), link("/bin", "/usr/bin"), folder("/etc/ssl/certs"), file("/etc/localtime")),
    write=(),
    read=(),
    hide=(),
    path=(folder("/usr/bin"), link("/bin", "/usr/bin")._replace(real="/usr/bin")),
    tools=Tools(),
    cache=f"{HOME}/.cache/jail/caches/5c1e/files",
    gpu=Gpu(),
    repository=Repository(f"{WORKSPACE}/.git", f"{WORKSPACE}/.git", ""),
    guarded=(
        Guarded(f"{WORKSPACE}/RESEARCH.md", "file", "record of findings, read as fact by later sessions"),
        Guarded(f"{WORKSPACE}/.git/config", "file", "its keys make git run programs", verb="hold"),
        Guarded(f"{WORKSPACE}/.git/hooks", "folder", "git runs what is in it"),
    ),
    absent=(
        Guarded(f"{WORKSPACE}/CLAUDE.md", "absent", "instructions that the next agent session obeys"),
        Guarded(f"{WORKSPACE}/.claude", "absent", "settings, hooks or permissions of an agent"),
    ),
    watch_folders=(WORKSPACE,),
    sockets=(),
    hardlinked=(),
    unseen=(),
    enclosing="",
    own=(f"{HOME}/.local/state/jail", f"{HOME}/.cache/jail", "/opt/jail"),
    credentials=(f"{HOME}/.ssh", f"{HOME}/.aws"),
    devices=("null", "zero", "full", "random", "urandom", "tty", "sda", "kvm"),
    proc=("cpuinfo", "kcore", "keys", "sys", "bus", "acpi"),
    environment=(
        ("TERM", "xterm"),
        ("LC_TIME", "C"),
        ("AWS_SECRET_ACCESS_KEY", "canary"),
        ("PATH", "/usr/bin"),
    ),
    identity=("Ada", "ada@example.org"),
    branch="main",
    landlock=6,
    landlock_lacks=(),
    namespaces=("user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"),
    quotas=(("max_inotify_instances", 64),),
    open_files_hard=524288,
    processes_hard=-1,
    cgroup="",
    no_cgroup="no control group above this process is delegated to this user",
    memory_most=64 << 30,
)
