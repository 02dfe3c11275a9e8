"""A plan as text for a person and as plain values for JSON; the same text is the first entry of the ledger.

Rule: what is printed is what is done, in the order of the work: every step is there with its number. Steps in
a row that say the same of different targets share a paragraph, so that forty system folders are one sentence.
Nothing secret is printed: of the environment the names alone.
"""

from jail.errors import printable
from jail.light import Final, Iterator
from jail.plan.held import COPY, FILE, OVERLAY
from jail.plan.steps import Plan, Step
from jail.policy.amounts import limit_text, size_text

WIDTH: Final = 100
"""Columns of a line, where a path is not longer."""
_INDENT: Final = 18


def lines(plan: Plan, accepted: tuple[str, ...]) -> list[str]:
    """The plan, a line each; `accepted` are the losses that the policy accepts."""
    shown = [
        *_paragraph("command", list(map(_word, plan.command))),
        f"policy           {plan.policy} ({plan.policy_digest[:12]})",
        f"workspace        {plan.workspace}",
        f"as               uid {plan.uid}, gid {plan.gid}{_idmap(plan)}",
        *_paragraph("writable", list(plan.writable)),
        *_held(plan),
        "network          loopback only",
        f"terminal         {_terminal(plan)}",
        *_wrapped(f"{'limits':17}", _limits(plan)),
        *_paragraph("variables", [name for name, _ in plan.environment]),
        "",
    ]
    for first, group in _groups(plan.steps):
        shown += _steps(first, group)
    shown += [f"{'':6}{text}" for text in _command_steps(plan)]
    if plan.watched:
        shown += ["", "absent now, and moved into the session as soon as something makes them:"]
        for reason, paths in _by_reason(plan):
            shown += _wrapped(f"      {reason}: ", paths)
    for loss in plan.losses:
        verdict = "accepted by the policy" if loss.name in accepted else "NOT accepted: the run is refused"
        shown += ["", f"loss: {loss.name}: {loss.what} ({verdict})", f"      to do: {loss.remedy}"]
    if plan.notes:
        shown += ["", *(f"note: {note}" for note in plan.notes)]
    return [printable(line) for line in shown]


def _held(plan: Plan) -> list[str]:
    """What is written to and stays in the session."""
    shown: list[str] = []
    for thing in plan.held:
        how = _HOW[thing.kind]
        end = "a person applies it"
        if thing.deliver:
            end = f"{thing.deliver} are delivered where the policy says so, a person applies the rest"
        shown += _wrapped(
            f"{'held' if not shown else '':17}", [thing.path, f"({how}):", f"{thing.why};", end]
        )
    return shown


_HOW: Final = {
    OVERLAY: "by an overlay",
    COPY: "by a copy, made at the start",
    FILE: "by a link to a copy",
}


def _groups(steps: tuple[Step, ...]) -> Iterator[tuple[int, list[Step]]]:
    """Steps in a row that differ in their target alone, each group with the number of its first."""
    group: list[Step] = []
    for count, item in enumerate(steps, 1):
        if group and _says(group[-1]) != _says(item):
            yield count - len(group), group
            group = []
        group.append(item)
    if group:
        yield len(steps) - len(group) + 1, group


def _says(item: Step) -> tuple[str, tuple[str, ...], str]:
    return item.verb, item.options, item.why


def _steps(first: int, group: list[Step]) -> list[str]:
    last = first + len(group) - 1
    number = f"{first}" if first == last else f"{first}-{last}"
    item = group[0]
    head = f"{number:>7}  {item.verb:10} "
    options = " ".join(map(_option, item.options))
    tail = ([f"({options})"] if options else []) + ([f"# {item.why}"] if item.why else [])
    return _wrapped(head, [word for each in group for word in _target(each)] + tail)


def _target(item: Step) -> list[str]:
    """In parts between which a line may end."""
    if item.verb == "link":
        return [f"{item.target} -> {item.source}"]
    if item.verb == "cache":
        return [f"{item.target} <-", item.source]
    if item.verb == "file":
        return [f"{item.target} ({size_text(len(item.source.encode('utf-8', 'surrogateescape')))})"]
    return [item.target]


def _by_reason(plan: Plan) -> list[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for path, reason in plan.watched:
        inside = path.startswith(plan.workspace + "/")
        found.setdefault(reason, []).append(path[len(plan.workspace) + 1 :] if inside else path)
    return list(found.items())


def _paragraph(name: str, words: list[str]) -> list[str]:
    return _wrapped(f"{name:17}", words)


def _wrapped(head: str, words: list[str]) -> list[str]:
    """Words behind a head, folded at WIDTH; a word is never broken, and the first stands behind the head."""
    shown = [head.rstrip() if not words else head]
    for count, word in enumerate(filter(None, words)):
        if count and len(shown[-1]) + len(word) > WIDTH and shown[-1].strip():
            shown.append(" " * _INDENT)
        shown[-1] += word + " "
    return [line.rstrip() for line in shown]


def values(plan: Plan, accepted: tuple[str, ...]) -> dict[str, object]:
    """The plan as plain values, for `--json`; the environment by name alone."""
    shown = plan._asdict()
    shown["environment"] = [name for name, _ in plan.environment]
    shown["steps"] = [each._asdict() for each in plan.steps]
    shown["losses"] = [{**loss._asdict(), "accepted": loss.name in accepted} for loss in plan.losses]
    shown["held"] = [thing._asdict() for thing in plan.held]
    shown["limits"] = dict(plan.limits)
    shown["watched"] = [{"path": path, "reason": why} for path, why in plan.watched]
    return shown


def _command_steps(plan: Plan) -> list[str]:
    landlock = f"Landlock ABI {plan.landlock}" if plan.landlock else "no Landlock"
    return [
        "then, in the command's own process: limits; no capabilities, no way to gain any (no_new_privs);",
        f"{landlock}; system-call filter; probes of every wall; exec",
    ]


def _idmap(plan: Plan) -> str:
    return (
        f" (files of uid {plan.idmap_from} in the workspace appear as its own)"
        if plan.idmap_from >= 0
        else ""
    )


def _option(text: str) -> str:
    name, _, value = text.partition("=")
    return f"size={size_text(int(value))}" if name == "size" else text


def _limits(plan: Plan) -> list[str]:
    """The limits in words, and of memory who keeps it."""
    values = dict(plan.limits)
    by = "by a control group" if plan.cgroup else "watched by jail (no control group)"
    return [
        f"{size_text(values['memory_bytes'])} of memory,",
        f"{by};",
        f"{values['processes']} processes,",
        f"{values['open_files']} open files of each,",
        "no core dumps;",
        f"{size_text(values['tmp_bytes'])} in each private folder,",
        f"{size_text(values['held_bytes'])} kept back,",
        f"{size_text(values['output_bytes'])} printed;",
        f"time {limit_text(plan.timeout)}",
    ]


def _terminal(plan: Plan) -> str:
    return (
        f"a pty of its own; escape sequences may set: {', '.join(plan.terminal)}"
        if plan.terminal
        else "a pty of its own; escape sequences can set neither title nor clipboard"
    )


def _word(text: str) -> str:
    plain = text and all(char.isalnum() or char in "-_./=:,@+%" for char in text)
    return text if plain else "'" + text.replace("'", "'\\''") + "'"
