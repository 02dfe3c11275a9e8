"""What a project's own file (`.jail.toml`) may say: less than what the person allows, never more.

Rule: the file lies in the workspace, so anybody who sends a change to the project writes it, and the agent's
last session may have. RULES has a rule for each key of a policy, and a test fails for a key without one; each
rule takes away or refuses. Every refusal is told at once, with what the value is now and what was asked for,
and refuses the run: a project that asks for more is not run with less, as nobody would look at it.

Which paths are written, held, read or absent is compared where they lead, not by list: taking away an entry
of `read` or `hold` inside a writable folder would give more.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from jail.policy import limits
from jail.policy.amounts import duration_text, size_text
from jail.policy.check import VERBS, WORKSPACE, Fault, clean, resolved
from jail.policy.draft import KEYS, WITHOUT, Draft, Item, Origin
from jail.policy.parse import Document
from jail.policy.paths import beneath
from jail.policy.shape import Path, at, shown

WHO: Final = "project"
_MOST_SHOWN: Final = 8
"""Values named in one message; `jail policy show` has them all."""
_ASK: Final = "remove it; who runs jail here may allow it in their own file (`jail policy --help`)"
_READ: Final = 1
_HELD: Final = 2
_WRITTEN: Final = 3
_RANKS: Final = {"hide": 0, "system": _READ, "read": _READ, "hold": _HELD, "write": _WRITTEN}


class Asked(NamedTuple):
    """One key of the project's file, and the policy `before` it; `draft` is what is left of it."""

    before: Draft
    draft: Draft
    path: Path
    field: str
    value: Any
    file: str
    home: str
    workspace: str

    def origin(self, *steps: str | int) -> Origin:
        """The origin of a value of this key."""
        return Origin(WHO, self.file, shown((*self.path, *steps)))

    def refusal(self, asked: str, now: str, hint: str, *steps: str | int) -> Fault:
        """The fault of a key that asks for more."""
        return Fault(
            self.file, shown((*self.path, *steps)), f"a project may not {asked}; now: {now}", hint or _ASK
        )

    def now(self) -> str:
        """The entries of this field before the project's file, as many as a line holds."""
        return _listed(self.before.get(self.field, []))

    def place(self, path: str) -> str:
        """`path` in one form: what lies in the workspace as `./…`, itself `.`, everything else absolute."""
        found = resolved(path, self.home)
        if found.startswith("/") and beneath(found, self.workspace):
            return resolved(found[len(self.workspace) :].strip("/") or WORKSPACE, self.home)
        return found

    def places(self, verb: str) -> list[str]:
        """Where the entries of a list of paths lead, before the project's file."""
        return [self.place(item.value) for item in self.before.get(verb, [])]

    def rank(self, place: str) -> int:
        """What may be done at `place` before: 0 nothing, 1 read, 2 write what is held, 3 write; the nearest
        entry above decides, of two the lesser.
        """
        above = [(len(WORKSPACE), -_WRITTEN)] if beneath(place, WORKSPACE) else [(0, 0)]
        above += [
            (len(entry), -_RANKS[verb])
            for verb in VERBS
            for entry in self.places(verb)
            if beneath(place, entry)
        ]
        return -max(above)[1]


Rule = Callable[[Asked], Iterator[Fault]]


def narrow(draft: Draft, project: Document, home: str, workspace: str) -> tuple[Draft, list[Fault]]:
    """The draft with what the project takes away, and every fault of what it would add."""
    left = {field: list(items) for field, items in draft.items()}
    faults: list[Fault] = []
    for path, rule in RULES.items():
        value = at(project.tables, path)
        if value is None:
            continue
        field = _FIELDS.get(path, "")
        faults += rule(Asked(draft, left, path, field, value, project.file, home, workspace))
    order = list(_keys(project.tables))
    faults.sort(key=lambda fault: next((n for n, key in enumerate(order) if fault.key.startswith(key)), -1))
    return left, faults


def _keys(tables: dict[str, Any], *above: str) -> Iterator[str]:
    """The keys of a file in its order, those that hold a table after what it holds."""
    for key, value in tables.items():
        if isinstance(value, dict) and not above:
            yield from _keys(value, key)
        yield shown((*above, key))


def _listed(items: list[Item]) -> str:
    shown_items = [str(item.value[0] if isinstance(item.value, tuple) else item.value) for item in items]
    more = f" and {len(items) - _MOST_SHOWN} more" if len(items) > _MOST_SHOWN else ""
    return (", ".join(shown_items[:_MOST_SHOWN]) + more) or "nothing"


def _nothing(asked: Asked) -> Iterator[Fault]:
    """A description says what the file is for and changes nothing."""
    del asked
    yield from ()


def _never(what: str, hint: str = "") -> Rule:
    """A key that no project may have, whatever it says."""

    def rule(asked: Asked) -> Iterator[Fault]:
        value = asked.value
        said = ", ".join(map(str, value)) if isinstance(value, (list, dict)) else str(value)
        now = asked.now() if asked.field else _listed(asked.before["name"])
        yield asked.refusal(f"{what} (it asks for `{said[:80]}`)", now, hint)

    return rule


def _listing(asked: Asked) -> Iterator[Fault]:
    """What a project lists is all that is left."""
    have = {item.value: item for item in asked.before.get(asked.field, [])}
    left = []
    for position, name in enumerate(asked.value):
        if name in have:
            left.append(have[name])
        else:
            yield asked.refusal(f"add `{name}`", asked.now(), "", position)
    asked.draft[asked.field] = left


def _passing(asked: Asked) -> Iterator[Fault]:
    """As a listing; a name may also stand for one that a pattern passes."""
    have = [item.value for item in asked.before.get(asked.field, [])]
    left = []
    for position, name in enumerate(asked.value):
        if any(_covers(pattern, name) for pattern in have):
            left.append(Item(name, asked.origin(position)))
        else:
            yield asked.refusal(f"pass `{name}` on", asked.now(), "", position)
    asked.draft[asked.field] = left


def _covers(pattern: str, name: str) -> bool:
    if pattern.endswith("*"):
        return name.removesuffix("*").startswith(pattern[:-1])
    return pattern == name


def _setting(asked: Asked) -> Iterator[Fault]:
    """Values are the person's, as a variable can name programs and settings; the same again is no matter."""
    have = dict(item.value for item in asked.before.get(asked.field, []))
    for name, value in asked.value.items():
        if have.get(name) != value:
            now = "set to another value" if name in have else "not set"
            yield asked.refusal(f"set `{name}`", now, "", name)


def _switch(asked: Asked) -> Iterator[Fault]:
    now = asked.before[asked.field][-1].value
    if asked.value and not now:
        yield asked.refusal("turn this on", "off", "")
    else:
        asked.draft[asked.field] = [Item(asked.value, asked.origin())]


def _limit(read: Callable[[Any], float], text: Callable[[Any], str]) -> Rule:
    """An amount that may only become smaller; 0 is none, the widest, and only time has it."""

    def rule(asked: Asked) -> Iterator[Fault]:
        item, wanted = asked.before[asked.field][-1], read(asked.value)
        now = item.value
        if (wanted or float("inf")) > (now or float("inf")):
            what = f"raise this to {text(wanted)}" if wanted else "take the limit away"
            hint = f"write {text(now)} or less, or remove the key"
            yield asked.refusal(what, f"{text(now)}, by {item.origin.who}", hint)
        elif wanted != now:
            asked.draft[asked.field] = [Item(wanted, asked.origin())]

    return rule


def _writing(asked: Asked) -> Iterator[Fault]:
    """What a project lists is all that is written beside the workspace."""
    outside = [place for place in asked.places("write") if not beneath(place, WORKSPACE)]
    left = []
    for position, text in enumerate(asked.value):
        place = asked.place(text)
        if beneath(place, WORKSPACE):
            how = "held" if asked.rank(WORKSPACE) == _HELD else "written"
            now = f"the workspace is {how}, but for what is named"
            hint = "remove it; name under `hold`, `read` or `hide` what is not to be written there"
            yield asked.refusal(f"add `{text}`", now, hint, position)
        elif any(beneath(place, folder) for folder in outside) and asked.rank(place) == _WRITTEN:
            left.append(Item(clean(text), asked.origin(position)))
        else:
            yield asked.refusal(f"add `{text}`", asked.now(), "", position)
    asked.draft["write"] = left


def _holding(asked: Asked) -> Iterator[Fault]:
    """What is written becomes held, with all that is written in it."""
    for position, text in enumerate(asked.value):
        place = asked.place(text)
        rank = asked.rank(place)
        if rank < _HELD:
            now = "it is read-only" if rank else "it does not exist inside"
            yield asked.refusal(f"hold `{text}`", now, "", position)
            continue
        _leave_out(asked, "write", place)
        if rank == _WRITTEN:
            asked.draft["hold"] = [
                *asked.draft.get("hold", []),
                Item(clean(text), asked.origin(position)),
            ]
    if not asked.value:
        hint = "remove it; `hold` keeps for review what is written"
        yield asked.refusal("hold nothing", asked.now(), hint)


def _reading(asked: Asked) -> Iterator[Fault]:
    """What is written, held or read becomes read-only, with all that is in it."""
    for position, text in enumerate(asked.value):
        place = asked.place(text)
        rank = asked.rank(place)
        if not rank:
            yield asked.refusal(f"give `{text}`", "it does not exist inside", "", position)
            continue
        _leave_out(asked, "write", place)
        _leave_out(asked, "hold", place)
        if rank > _READ:
            asked.draft["read"] = [
                *asked.draft.get("read", []),
                Item(clean(text), asked.origin(position)),
            ]
    if not asked.value:
        hint = "remove it; `hide` makes absent, and `read` makes what is written read-only"
        yield asked.refusal("read nothing", asked.now(), hint)


def _hiding(asked: Asked) -> Iterator[Fault]:
    """What is hidden is given by no other entry; what lies in a hidden folder is hidden already."""
    hidden = {asked.place(item.value) for item in asked.draft.get("hide", [])}
    for position, text in enumerate(asked.value):
        place = asked.place(text)
        if place in hidden:
            continue
        hidden.add(place)
        for verb in ("system", "write", "hold", "read"):
            _leave_out(asked, verb, place)
        asked.draft["hide"] = [*asked.draft.get("hide", []), Item(clean(text), asked.origin(position))]
    if not asked.value:
        yield asked.refusal("show what is hidden", asked.now(), "remove it; an empty list hides nothing more")


def _leave_out(asked: Asked, verb: str, place: str) -> None:
    """Take out of a list what is `place` or lies in it."""
    items = asked.draft.get(verb, [])
    asked.draft[verb] = [item for item in items if not beneath(asked.place(item.value), place)]


def _removing(asked: Asked) -> Iterator[Fault]:
    """Names taken away from a list; those that are not there are no matter."""
    [field] = WITHOUT[str(asked.path[-1])]
    gone = {asked.place(text) if field in VERBS else text for text in asked.value}
    asked.draft[field] = [
        item
        for item in asked.draft.get(field, [])
        if (asked.place(item.value) if field in VERBS else item.value) not in gone
    ]
    yield from ()


def _removing_names(asked: Asked) -> Iterator[Fault]:
    """Environment names: a value that the policy sets stays, as it may hold something back."""
    kept = {item.value[0] for item in asked.before.get("set_values", [])}
    passed = [item.value for item in asked.before.get("pass_names", [])]
    for position, name in enumerate(asked.value):
        if name in kept:
            yield asked.refusal(f"take away `{name}`", "set by the policy", "", position)
        elif wide := [pattern for pattern in passed if pattern != name and _covers(pattern, name)]:
            hint = f"take `{wide[0]}` away, or list what is left under environment.pass"
            yield asked.refusal(f"take `{name}` out of `{wide[0]}`", asked.now(), hint, position)
    asked.draft["pass_names"] = [
        item for item in asked.draft.get("pass_names", []) if item.value not in set(asked.value)
    ]


_HIDE_IT: Final = "remove it; a project names under files.hide what is not to exist inside"

RULES: Final[dict[Path, Rule]] = {
    ("name",): _never("name the policy"),
    ("description",): _nothing,
    ("base",): _never("choose the level", "remove it, and lower here what is too much"),
    ("parts",): _never("take parts in", "remove it, and list here what is left of the policy"),
    ("files", "system"): _never("say what is given of the system", _HIDE_IT),
    ("files", "write"): _writing,
    ("files", "hold"): _holding,
    ("files", "read"): _reading,
    ("files", "hide"): _hiding,
    ("toolchains", "use"): _listing,
    ("toolchains", "gpu"): _switch,
    ("environment", "pass"): _passing,
    ("environment", "set"): _setting,
    ("terminal", "allow"): _listing,
    ("hold", "deliver"): _listing,
    ("limits", "memory"): _limit(lambda value: limits.size("memory", value), size_text),
    ("limits", "processes"): _limit(int, str),
    ("limits", "open_files"): _limit(int, str),
    ("limits", "tmp"): _limit(lambda value: limits.size("tmp", value), size_text),
    ("limits", "held"): _limit(lambda value: limits.size("held", value), size_text),
    ("limits", "output"): _limit(lambda value: limits.size("output", value), size_text),
    ("limits", "timeout"): _limit(lambda value: limits.duration("timeout", value), duration_text),
    ("accept", "losses"): _listing,
    ("without", "system"): _never("take this away", _HIDE_IT),
    ("without", "write"): _removing,
    ("without", "hold"): _never("take this away: it may stand in a folder that is written", _HIDE_IT),
    ("without", "read"): _never("take this away: it may stand in a folder that is written", _HIDE_IT),
    ("without", "hide"): _never("show what is hidden"),
    ("without", "toolchains"): _removing,
    ("without", "environment"): _removing_names,
    ("without", "terminal"): _removing,
    ("without", "deliver"): _removing,
    ("without", "losses"): _removing,
}
"""Key → what a project may do with it. A listing stands before what takes away: both may be in one file."""

_FIELDS: Final[dict[Path, str]] = {
    **{path: field for field, path in KEYS.items()},
    **{("without", key): fields[0] for key, fields in WITHOUT.items()},
}
