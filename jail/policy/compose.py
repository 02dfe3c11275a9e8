"""From the files that take part to one policy, and where each of its values comes from.

Rule: one order, and each file changes what those before it say: parts, the level or policy that uses them,
the person's file, the project's file. Lists are joined, a single value replaces the one before, `[without]`
takes away. On one path the later word wins; what would be given inside a folder that an earlier file hides
is refused, as nobody can tell which of the two was meant. The project's file is judged by narrow alone.
Imported on a cache miss only. Pure but for the shipped files, which it asks sources for.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from jail.kernel.digest import sha256_hex
from jail.policy import limits, narrow, parse, sources
from jail.policy.check import VERBS, Entry, Fault, PolicyFaults, clean, clean_home, contradictions, resolved
from jail.policy.draft import KEYS, WITHOUT, Draft, Item, Origin, named
from jail.policy.parse import LEVEL, OWN, PART, PROJECT, USER, Document, Shipped
from jail.policy.paths import beneath
from jail.policy.shape import at, shown
from jail.policy.sources import Given, Text
from jail.policy.value import Policy


class Composed(NamedTuple):
    """The policy of a run; `draft` has each value with its origin, by field of Policy; `shipped` the shipped
    files that took part; `level` the name of the level that it starts from, "" for none.
    """

    policy: Policy
    draft: Draft
    shipped: tuple[Text, ...]
    level: str


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "memory_bytes": lambda value: limits.size("memory", value),
    "tmp_bytes": lambda value: limits.size("tmp", value),
    "held_bytes": lambda value: limits.size("held", value),
    "output_bytes": lambda value: limits.size("output", value),
    "timeout": lambda value: limits.duration("timeout", value),
}
"""How the value of a field is read from that of its key, where the two differ."""
BUILT_IN: Final = Origin("built in", "", "")
_ABSENT: Final[dict[str, Any]] = {
    "name": "",
    "description": "",
    "gpu": False,
    "memory_bytes": int(limits.BOUNDS["memory"].absent),
    "processes": int(limits.BOUNDS["processes"].absent),
    "open_files": int(limits.BOUNDS["open_files"].absent),
    "tmp_bytes": int(limits.BOUNDS["tmp"].absent),
    "held_bytes": int(limits.BOUNDS["held"].absent),
    "output_bytes": int(limits.BOUNDS["output"].absent),
    "timeout": limits.BOUNDS["timeout"].absent,
}
"""What an absent key means: nothing, or the strict limit. An absent list is empty."""


def compose(given: Given) -> Composed:
    """The policy of a run; PolicyFaults with all faults of the first file that has any, JailError where a
    shipped file cannot be read.
    """
    home = clean_home(given.home)
    known = Shipped(sources.shipped_names(), sources.shipped_names("parts"))

    def judged(text: Text, kind: str) -> Document:
        return parse.parse(text.content, text.file, home, kind, known)

    own = judged(given.own, OWN) if given.own else None
    user = judged(given.user, USER) if given.user else None
    project = judged(given.project, PROJECT) if given.project else None
    level = _level(given, own, user)
    texts = [sources.shipped(level)] if level else []
    layers = [judged(text, LEVEL) for text in texts] + [layer for layer in (own, user) if layer]

    draft: Draft = {field: [Item(value, BUILT_IN)] for field, value in _ABSENT.items()}
    shipped: list[Text] = []
    for layer in layers:
        faults = list(_take_away(draft, layer, home))
        if faults:
            raise PolicyFaults(f"the policy {layer.file}", faults)
        for name in layer.tables.get("parts", ()):
            part = sources.shipped(name, "parts")
            shipped.append(part)
            _join(draft, judged(part, PART), f"part {name}", home)
        _join(draft, layer, _who(layer, level), home)
    _refuse_contradictions(draft, home)
    allowed: tuple[tuple[str, str], ...] = ()
    if project:
        allowed = _allowed(draft)
        draft, faults = narrow.narrow(draft, project, home, given.workspace)
        if faults:
            raise PolicyFaults(f"the project file {project.file}", faults)
    shipped += texts
    read = [*shipped, *(text for text in (given.own, given.user, given.project) if text)]
    policy = policy_of(draft, read)._replace(allowed=allowed)
    return Composed(policy, draft, tuple(shipped), level)


def _allowed(draft: Draft) -> tuple[tuple[str, str], ...]:
    """What the person gives, as Policy.allowed has it."""
    return (("write", "."), *((verb, item.value) for verb in VERBS for item in draft.get(verb, ())))


def policy_of(draft: Draft, read: Iterable[Text]) -> Policy:
    """The value that a draft is; `read` are the files, in the order in which they took part."""
    values: dict[str, Any] = {}
    for field in KEYS:
        found = tuple(item.value for item in draft.get(field, ()))
        values[field] = found[-1] if field in _ABSENT else found
    values["set_values"] = tuple(sorted(values["set_values"]))
    digests = dict.fromkeys((text.file, sha256_hex(text.content)) for text in read)
    return Policy(**values, sources=tuple(digests))


def _level(given: Given, own: Document | None, user: Document | None) -> str:
    """The shipped level that the run starts from, "" for none."""
    if own:
        return str(own.tables.get("base", ""))
    chosen = user.tables.get("base", "") if user else ""
    return given.level or chosen or sources.DEFAULT


def _who(layer: Document, level: str) -> str:
    return {LEVEL: f"level {level}", OWN: "your policy", USER: "your file"}[layer.kind]


def _join(draft: Draft, layer: Document, who: str, home: str) -> None:
    """Add what one file says to the draft."""
    for field, path in KEYS.items():
        found = at(layer.tables, path)
        if found is None:
            continue
        if field in _ABSENT:
            value = _READERS.get(field, _same)(found)
            draft[field] = [Item(value, Origin(who, layer.file, shown(path)))]
            continue
        for step, value in found.items() if isinstance(found, dict) else enumerate(found):
            origin = Origin(who, layer.file, shown((*path, step)))
            _add(draft, field, Item((step, value) if field == "set_values" else value, origin), home)


def _same(value: Any) -> Any:
    return value


def _add(draft: Draft, field: str, item: Item, home: str) -> None:
    """Add one entry of a list; what it contradicts in earlier files goes, and what it repeats stays.

    Within one file nothing contradicts anything: parse has refused that.
    """
    said = {named(field, kept, home) for kept in draft.get(field, ())}
    if field in VERBS:
        item = item._replace(value=clean(item.value))
        _give_way(draft, field, item, home)
        if field in ("system", "read"):  # which say the same
            said = {named(verb, kept, home) for verb in ("system", "read") for kept in draft.get(verb, ())}
    elif field == "pass_names":
        _leave_out(draft, "set_values", lambda kept: kept.value[0] == item.value)
    elif field == "set_values":
        _leave_out(draft, "pass_names", lambda kept: kept.value == item.value[0])
        _leave_out(draft, "set_values", lambda kept: kept.value[0] == item.value[0])
        said = set()
    if named(field, item, home) not in said:
        draft.setdefault(field, []).append(item)


def _give_way(draft: Draft, verb: str, item: Item, home: str) -> None:
    """Take the same path out of the other lists of earlier files; and where it is hidden, what lies in it."""
    path = resolved(item.value, home)
    for other in VERBS:
        if other != verb and {other, verb} != {"system", "read"}:
            _leave_out(
                draft,
                other,
                lambda kept: (
                    kept.origin.file != item.origin.file
                    and _is_or_hides(verb, path, resolved(kept.value, home))
                ),
            )


def _is_or_hides(verb: str, path: str, other: str) -> bool:
    return other == path or (verb == "hide" and beneath(other, path))


def _leave_out(draft: Draft, field: str, leaves: Callable[[Item], bool]) -> None:
    draft[field] = [item for item in draft.get(field, ()) if not leaves(item)]


def _take_away(draft: Draft, layer: Document, home: str) -> Iterator[Fault]:
    """Take away what [without] names; what is not there is a fault, as it was perhaps misspelt."""
    for key, fields in WITHOUT.items():
        path = ("without", key)
        for place, text in enumerate(at(layer.tables, path) or ()):
            wanted = resolved(text, home) if key in VERBS else text
            found = False
            for field in fields:
                before = draft.get(field, [])
                left = [item for item in before if named(field, item, home) != wanted]
                found = found or len(left) < len(before)
                draft[field] = left
            if not found:
                what = f"`{text}` is not there to be taken away"
                hint = "look at `jail policy show`; remove the entry, or write it as it stands there"
                yield Fault(layer.file, shown((*path, place)), what, hint)


def _refuse_contradictions(draft: Draft, home: str) -> None:
    """Refuse what a later file gives inside a folder that an earlier one hides."""
    where: dict[str, Origin] = {}
    entries = []
    for verb in VERBS:
        for item in draft.get(verb, ()):
            label = f"{item.origin.key} of {item.origin.file}"
            where[label] = item.origin
            entries.append(Entry(verb, label, resolved(item.value, home)))
    found = contradictions(entries)
    if found:
        faults = [Fault(where[e.label].file, where[e.label].key, message, hint) for e, message, hint in found]
        raise PolicyFaults("the policy", faults)
