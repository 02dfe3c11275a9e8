"""policy + facts → plan.

Rule: what no rule names does not exist inside; the most specific path wins; a folder that cannot be given
safely is not given, and the plan says so. The order of the steps is the order of the work: an empty root,
private folders and given trees from the outermost inwards, devices and /proc, what is read-only or absent
inside given trees, and last the seal.
"""

from jail.light import Final
from jail.plan import bounds, caches, devices, guard, inside, ranks, searchpath
from jail.plan.facts import Facts, Place
from jail.plan.held import BY_COMMANDS, FILES_INSIDE, command_folders, is_absent_in_a_held_tree, wanted
from jail.plan.steps import Loss, Plan, Step
from jail.plan.trees import Trees, real_steps, refusal
from jail.plan.withheld import withheld
from jail.plan.workspace import refuse_workspace
from jail.policy.paths import beneath, between, deepest, overlaps
from jail.policy.value import Policy

MASKED: Final = {
    "kcore": "the kernel's memory",
    "kmsg": "the kernel's log",
    "keys": "keys of the user",
    "key-users": "who holds keys",
    "kallsyms": "addresses of the kernel",
    "kpagecount": "memory of others",
    "kpageflags": "memory of others",
    "kpagecgroup": "memory of others",
    "timer_list": "timers of the host",
    "timer_stats": "timers of the host",
    "sched_debug": "tasks of the host",
    "latency_stats": "tasks of the host",
    "sysrq-trigger": "commands to the kernel",
    "interrupts": "key strokes can be timed by it",
    "vmallocinfo": "addresses of the kernel",
    "acpi": "firmware",
    "scsi": "commands to disks",
    "asound": "sound cards",
    "driver": "drivers",
}
"""Names in /proc that tell of the host or command it."""
FROZEN: Final = ("sys", "bus", "fs", "irq", "tty", "pressure")
"""Folders of /proc whose writes would change the host."""
BYTES_FOR_A_FILE: Final = 4096
"""How many bytes of a private folder allow one file more: a page, as files have on average."""
NAMESPACES: Final = ("user", "mount", "pid", "net", "ipc", "uts", "cgroup")


def build(policy: Policy, facts: Facts, command: tuple[str, ...]) -> Plan:
    """The plan of one run; raises JailError for a workspace or a path that must not be given."""
    if not policy.toolchains:
        facts = facts._replace(cache="")  # it is kept for them
    refuse_workspace(facts.workspace, facts.home, facts.own, facts.credentials, facts.system)
    trees = _trees(policy, facts)
    variables = searchpath.give_tools(trees, facts)
    path = searchpath.entries(trees, facts)
    guard.guard(trees, facts)
    copies = _copies_of_files(trees)
    held = tuple(trees.held.values())
    trees.notes += [
        *caches.notes(facts, policy.toolchains),
        *devices.notes(policy, facts),
        inside.identity_note(facts),
    ]
    variables = {**caches.environment(policy.toolchains, facts.cache), **variables}
    environment = inside.environment(policy, facts, ":".join(path) or "/usr/bin:/bin", variables)
    plan = Plan(
        command=command,
        policy=policy.name,
        policy_digest=policy.digest,
        workspace=facts.workspace.real,
        folder=facts.folder,
        uid=facts.uid,
        gid=facts.gid,
        idmap_from=facts.idmap_from,
        steps=(),
        losses=(*_losses(facts), *trees.losses),
        environment=environment,
        writable=(
            *trees.roots(),
            *trees.private,
            *((caches.INSIDE,) if facts.cache else ()),
            *((FILES_INSIDE,) if copies else ()),
        ),
        watched=tuple((place.path, place.reason) for place in facts.absent if not trees.keeps(place.path)),
        limits=bounds.limits(policy, facts),
        timeout=policy.timeout,
        cgroup=facts.cgroup,
        no_cgroup=facts.no_cgroup,
        landlock=facts.landlock,
        notes=(*trees.notes, *bounds.notes(policy, facts)),
        terminal=policy.terminal,
        held=held,
    )
    return plan._replace(steps=tuple(_steps(policy, facts, trees, plan, copies)))


def _copies_of_files(trees: Trees) -> list[Step]:
    """What must be there before a held file can be covered, of those that no rule hides."""
    if not trees.held:
        return []
    from jail.plan import held_files  # most folders hold nothing

    held_files.withdraw(trees)
    return held_files.steps(tuple(trees.held.values()))


def _trees(policy: Policy, facts: Facts) -> Trees:
    """The trees that the policy and the workspace name."""
    trees = Trees(facts)
    for place in facts.system:
        trees.system(place)
    trees.write(facts.workspace.real, "the workspace")
    for place in facts.write:
        trees.write(_granted(place, facts, "write"), f"write = {place.given}")
    _give_repository(trees, facts)
    for place in facts.hold:
        if not is_absent_in_a_held_tree(place, facts):
            trees.write(_granted(place, facts, "hold"), f"hold = {place.given}")
    if wanted(facts):
        from jail.plan import heldtrees  # most runs hold no tree

        trees.losses = heldtrees.give(trees, facts)
    for place in facts.write:
        if trees.keeps(place.real) and place.real in command_folders(facts):
            trees.notes.append(f"write = {place.given}: it is held, since it is {BY_COMMANDS}")
        else:
            trees.write(place.real, f"write = {place.given}")
    for place in facts.read:
        path = _granted(place, facts, "read")
        if path in trees.writable:
            what = f"{place.given} is read-only, and given for writing at once: {trees.writable[path]}"
            raise refusal(what, f"files.read: {place.given}", "take one of the two rules out")
        trees.read(path, f"read = {place.given}", place.real_kind)
    ranks.judge(facts)
    if policy.gpu:
        for place in facts.gpu.read:
            trees.read(place.real, "what a GPU's driver asks for")
    return trees


def _granted(place: Place, facts: Facts, verb: str) -> str:
    """The canonical path of a rule, once it is sure that it may be given."""
    where = f"files.{verb}: {place.given}"
    if place.strays:
        what = f"the link {place.strays}, which a command may have laid, leads out of what it may write"
        raise refusal(f"{what}, to {place.real or 'nowhere'}", where, _name_it(place))
    if place.real_kind not in ("file", "folder"):
        raise refusal(f"{place.given} is {place.real_kind}", where, "name a file or folder that is there")
    relation = beneath if verb == "read" else overlaps
    root = "is the root folder" if place.real == "/" else ""
    if why := withheld(place.real, facts.home, facts.own, facts.credentials, relation) or root:
        raise refusal(f"{place.given} {why}", where, "name a narrower folder")
    return place.real


def _name_it(place: Place) -> str:
    if place.project or not place.real:
        return "look at that link, and remove it or the entry"
    return f"look at that link; where this is meant, name {place.real} itself"


def _give_repository(trees: Trees, facts: Facts) -> None:
    repository = facts.repository
    if repository is None:
        return
    if repository.refused and repository.here:
        hint = "look at what an earlier run did to it; mend it (chmod -R u+rwX .git), or move it away"
        where = f"workspace {facts.workspace.real}"
        raise refusal(f"the git folder cannot be judged: {repository.refused}", where, hint)
    folders = () if repository.refused else (repository.commondir, repository.gitdir)
    for folder in folders:
        if not trees.holds(folder):
            trees.write(folder, "git folder of the workspace, which points back to it")


def _losses(facts: Facts) -> tuple[Loss, ...]:
    losses = [] if facts.cgroup else [bounds.unbounded(facts.no_cgroup)]
    if "cgroup" not in facts.namespaces:
        losses.append(
            Loss(
                "cgroup-namespace",
                "names of the host's control groups can be read inside",
                "use a kernel with CONFIG_CGROUPS",
            )
        )
    if facts.landlock >= _LANDLOCK_WITH_MOVES and facts.landlock_lacks:
        lacks = ", ".join(facts.landlock_lacks)
        losses.append(
            Loss(
                "landlock-rights", f"Landlock is ABI {facts.landlock}, without {lacks}", "use a newer kernel"
            )
        )
    if facts.landlock < _LANDLOCK_WITH_MOVES:
        found = f"ABI {facts.landlock}" if facts.landlock else "absent"
        losses.append(
            Loss(
                "landlock",
                f"Landlock is {found}: the second wall for files is missing",
                "use kernel 5.19 or later with Landlock",
            )
        )
    return tuple(losses)


_LANDLOCK_WITH_MOVES: Final = 2
"""ABI 1 forbids every rename between folders, which no build survives; LANDLOCK_ACCESS_FS_REFER came with ABI
2.
"""


def _steps(policy: Policy, facts: Facts, trees: Trees, plan: Plan, copies: list[Step]) -> list[Step]:
    cached = caches.steps(trees, facts, policy.toolchains)
    return [
        Step(
            "namespaces",
            options=_namespaces(facts),
            why="nothing of the host is shared that is not shown below",
        ),
        Step(
            "map",
            options=(f"uid={facts.uid}", f"gid={facts.gid}"),
            why="no other id of the host exists inside",
        ),
        Step("root", options=_memory(policy.tmp_bytes, "0755")),
        *devices.steps(policy, facts, _memory(policy.tmp_bytes, "1777")),
        *_mounts(policy, facts, trees),
        *trees.links,
        *inside.files(facts, plan),
        *copies,
        *cached,
        *_proc(policy, facts),
        *_inner(trees),
        Step("freeze", "/run/jail", why="what jail tells cannot be changed"),
        Step("freeze", "/dev", why="no device can be added"),
        Step("freeze", "/", why="nothing can be added to the root"),
        Step("pivot", why="the host's files are out of reach from here on"),
        Step("loopback"),
        Step("hostname", inside.HOSTNAME),
    ]


def _inner(trees: Trees) -> list[Step]:
    """What is mounted in given trees, from the outermost inwards; nothing where a folder above is hidden."""
    steps: list[Step] = []
    hidden = [path for path, step in trees.inner.items() if step.verb == "hide"]
    for path in sorted(trees.inner.keys() | trees.over.keys(), key=_by_depth):
        if deepest(path.rpartition("/")[0], hidden):
            continue
        over = trees.over.get(path, [])
        steps += over
        if path in trees.inner and (not over or trees.inner[path].verb == "hide"):
            steps.append(trees.inner[path])
    return steps


def _namespaces(facts: Facts) -> tuple[str, ...]:
    return tuple(name for name in NAMESPACES if name != "cgroup" or "cgroup" in facts.namespaces)


def _by_depth(path: str) -> tuple[str, ...]:
    return tuple(path.split("/"))


def _memory(size: int, mode: str) -> tuple[str, ...]:
    # Empty files cost nothing of `size`, and their inodes lie in memory too (tmpfs(5)).
    return (f"size={size}", f"nr_inodes={max(1024, size // BYTES_FOR_A_FILE)}", f"mode={mode}")


def _mounts(policy: Policy, facts: Facts, trees: Trees) -> list[Step]:
    """Private folders and given trees from the outermost inwards, so that each lands on what is already
    there.
    """
    found: dict[str, list[Step]] = {}
    for folder in trees.private:
        mode = "0700" if folder == facts.home else "1777"
        why = "the home folder is private" if folder == facts.home else "private"
        if folder != "/dev/shm":  # noqa: S108 - a name inside
            found[folder] = [Step("tmpfs", folder, "", _memory(policy.tmp_bytes, mode), why)]
    for path, why in trees.read_only.items():
        found[path] = [Step("bind", path, path, ("ro",), why)]
    for path, why in trees.writable.items():
        if path in trees.held or path in trees.lost:
            found[path] = [Step("bind", path, path, ("ro",), why)]
        elif path not in trees.over:
            found[path] = real_steps(path, why)
    steps: list[Step] = []
    for path in sorted(found, key=_by_depth):
        holder = deepest(path.rpartition("/")[0] or "/", trees.private)
        if holder:
            # A folder of ours that leads to a mount is made by jail in a private folder that the command may
            # change.
            missing = between(path, holder)
            steps += [
                Step("pin", folder, holder, ("made",), f"so that {path} stays where it is")
                for folder in missing
                if folder not in found and not any(step.target == folder for step in steps)
            ]
        steps += found[path]
    return steps


def _proc(policy: Policy, facts: Facts) -> list[Step]:
    # NVIDIA's libraries read /proc/driver/nvidia, of which the kernel lets root alone write.
    shown = ("driver",) if policy.gpu and facts.gpu.devices else ()
    return [
        Step("proc", "/proc"),
        *(
            Step("quota", f"/proc/sys/user/{name}", options=(str(value),), why="half of what the caller has")
            for name, value in facts.quotas
        ),
        *(
            Step("mask", f"/proc/{name}", why=why)
            for name, why in MASKED.items()
            if name in facts.proc and name not in shown
        ),
        *(
            Step("protect", f"/proc/{name}", "", ("folder",), "kernel settings")
            for name in FROZEN
            if name in facts.proc
        ),
    ]
