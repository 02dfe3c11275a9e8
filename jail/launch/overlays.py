"""Which of the trees that are to be held an overlay can hold here: each is tried before there is a plan.

Rule: what can be tried is tried, with the steps of a run, in a child that ends, over the tree itself and with
layers where the session will have them; nothing of it stays. What no overlay can hold is weighed, since a
small tree can be copied.
"""

import os

from jail.errors import EXIT_JAIL
from jail.kernel import files, privileges, trees, walk
from jail.launch import keeper
from jail.launch.steps import Build
from jail.ledger import place
from jail.light import Final, NoReturn, suppress
from jail.plan.facts import Facts
from jail.plan.held import COPY_BYTES, COPY_ENTRIES, UPPER, WORK, wanted
from jail.plan.steps import Plan, Step
from jail.policy.paths import deepest

_SHOWN: Final = 3
"""Mounts in a tree that are named."""
_ANSWER: Final = 1 << 16
_ATTRIBUTE: Final = "user.jail"


def look(facts: Facts, identities: dict[str, files.Identity], state: str) -> Facts:
    """The facts with what is true of the trees that are to be held. Raises JailError where there is no
    state folder.
    """
    found = [thing.path for thing in wanted(facts) if thing.kind == "folder"]
    submounts = _submounts(found)
    inner = [path for path, kind in submounts if kind == "folder"]
    refused = {path: why for path in (*found, *inner) if (why := _mounts_in(path, submounts))}
    asked = [path for path in (*found, *inner) if path not in refused]
    if asked:
        refused.update(_tried(facts, identities, state, asked))
    return facts._replace(
        no_overlay=tuple(refused.items()),
        sizes=tuple((path, *weigh(path)) for path in refused),
        submounts=tuple(submounts),
        strange=tuple(path for path in (*found, *inner) if _is_strange(path, facts)),
    )


def _is_strange(path: str, facts: Facts) -> bool:
    found = os.stat(path)
    mapped = (facts.uid, facts.gid) if facts.idmap_from < 0 else (facts.idmap_from, facts.idmap_from)
    return (found.st_uid, found.st_gid) != mapped


def _mounts_in(path: str, submounts: list[tuple[str, str]]) -> str:
    found = [inner for inner, _ in submounts if inner != path and deepest(inner, (path,))]
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"there are mounts in it: {', '.join(found[:_SHOWN])}{more}" if found else ""


def _submounts(found: list[str]) -> list[tuple[str, str]]:
    """Mounts strictly beneath one of the trees, outermost first, and whether each is a folder
    (proc_pid_mountinfo(5)).
    """
    points = {_unescaped(line.split(" ", 5)[4]) for line in _mountinfo() if line.count(" ") > 4}
    inner = {point for point in points if point not in found and deepest(point, found)}
    kinds = []
    for point in sorted(inner, key=lambda path: path.split("/")):
        with suppress(OSError):
            kinds.append((point, files.kind(os.lstat(point).st_mode)))
    return kinds


def _mountinfo() -> list[str]:
    return files.content("/proc/self/mountinfo").split("\n")


def _unescaped(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text


def weigh(path: str) -> tuple[int, int]:
    """Bytes on the disk and entries of a tree, mounts in it left out; past the bounds of a copy it is not
    looked at any further.
    """
    size = entries = 0
    fd = os.open(path, files.FOLDER)
    try:
        for folder in walk.folders(fd):
            entries += len(folder.entries)
            for entry in folder.entries:
                with suppress(OSError):
                    size += (
                        entry.stat(follow_symlinks=False).st_blocks * 512
                    )  # of any file system (stat(3type))
            if entries > COPY_ENTRIES or size > COPY_BYTES:
                break
    finally:
        os.close(fd)
    return size, entries


def _tried(
    facts: Facts, identities: dict[str, files.Identity], state: str, asked: list[str]
) -> dict[str, str]:
    """Why the kernel refuses an overlay, for each of the trees of which it does."""
    name, sessions = place.new_scratch(state)
    try:
        scratch = f"{state}/{place.SESSIONS}/{name}"
        try:
            os.setxattr(scratch, _ATTRIBUTE, b"")
        except OSError as error:
            why = f"the file system of {state} keeps no attributes of users: {error.strerror}"
            return dict.fromkeys(asked, why)
        steps = [
            Step("namespaces", options=("user", "mount")),
            Step("map"),
            Step("root", options=("mode=0755",)),
        ]
        for count, path in enumerate(asked):
            _make_layers(f"{scratch}/t{count}", facts)
            steps.append(Step("bind", f"/{count}", path, ("ro",)))
            steps.append(Step("overlay", f"/{count}", path, (f"t{count}",)))
        return _in_a_child(_plan(facts, steps), identities, scratch)
    finally:
        trees.remove_tree(sessions, name)
        os.close(sessions)


def _make_layers(folder: str, facts: Facts) -> None:
    for path in (folder, f"{folder}/{UPPER}", f"{folder}/{WORK}"):
        os.mkdir(path, 0o700)
        if os.geteuid() == 0:
            os.chown(path, facts.uid, facts.gid)


def _plan(facts: Facts, steps: list[Step]) -> Plan:
    """As much of a plan as the steps of a try ask for."""
    nothing = Plan._make([()] * len(Plan._fields))
    return nothing._replace(
        workspace=facts.workspace.real,
        uid=facts.uid,
        gid=facts.gid,
        idmap_from=facts.idmap_from,
        steps=tuple(steps),
    )


def _in_a_child(plan: Plan, identities: dict[str, files.Identity], scratch: str) -> dict[str, str]:
    ours, theirs = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        _try(Build(plan, identities, b"", scratch), theirs)
    os.close(theirs)
    answer = b""
    while piece := os.read(ours, _ANSWER):
        answer += piece
    os.close(ours)
    os.waitpid(pid, 0)
    lines = [line.split(b"\0") for line in answer.split(b"\0\0") if line]
    return {os.fsdecode(path): os.fsdecode(why) for path, why in lines}


def _try(build: Build, answer: int) -> NoReturn:
    """Do the steps; of an overlay that the kernel refuses, say which tree and why. Where the walls as such
    cannot be built, nothing is said: the run will say it.
    """
    try:
        if os.geteuid() == 0:
            keeper.donate(build)
            privileges.become(build.plan.uid, build.plan.gid)
        for step in build.plan.steps:
            try:
                build.run(step)
            except OSError as error:
                if step.verb != "overlay":
                    raise
                os.write(answer, os.fsencode(f"{step.source}\0{error}\0\0"))
    except BaseException:  # noqa: BLE001 - whatever it is, this is no run
        os._exit(EXIT_JAIL)
    os._exit(0)
