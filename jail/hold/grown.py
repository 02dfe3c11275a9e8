"""The manifest of a run that goes on from another: what judges the changes only grows.

Rule: what the first run planted is judged when the last one ends, by whoever resumed it, from whatever
terminal and with whatever policy. So a change that one of the runs would have refused or let wait is refused
or waits: PATH and the folders of commands are those of both, and a thing is delivered unasked only where
every run that held it allowed that. Each field has its rule here, and so has each of a held thing.
"""

from jail.errors import bug
from jail.hold.store import Manifest
from jail.light import Any, Callable, Final
from jail.plan.held import GIT_CONFIG, Held


def grown(old: Manifest, new: Manifest) -> Manifest:
    """The manifest that `new` gets, which goes on from what `old` has."""
    return Manifest(**{name: rule(old, new) for name, rule in RULES.items()})


def _things(old: Manifest, new: Manifest) -> tuple[Held, ...]:
    before = {thing.name: thing for thing in old.held}
    return tuple(_thing(before.get(thing.name, thing), thing) for thing in new.held)


def _thing(old: Held, new: Held) -> Held:
    return Held(**{name: rule(old, new) for name, rule in RULES_OF_THING.items()})


def _unasked(old: Manifest, new: Manifest) -> tuple[str, ...]:
    before = {thing.name: thing.deliver for thing in old.held}
    now = {thing.name: thing.deliver for thing in new.held}
    return tuple(
        name
        for name in new.unasked
        if name not in before or (name in old.unasked and before[name] == now.get(name))
    )


def _word(old: Held, new: Held) -> str:
    """Of two words the one by which more is looked at: a git config stays one, else a person decides."""
    if old.deliver == new.deliver:
        return new.deliver
    return GIT_CONFIG if GIT_CONFIG in (old.deliver, new.deliver) else ""


def _equal(name: str) -> Callable[[Any, Any], object]:
    def rule(old: Any, new: Any) -> object:
        if getattr(old, name) != getattr(new, name):
            raise bug(f"a run goes on from one with another {name}")
        return getattr(new, name)

    return rule


def _both(name: str) -> Callable[[Any, Any], object]:
    return lambda old, new: tuple(dict.fromkeys((*getattr(new, name), *getattr(old, name))))


def _of_new(name: str) -> Callable[[Any, Any], object]:
    return lambda _, new: getattr(new, name)


RULES: Final[dict[str, Callable[[Manifest, Manifest], Any]]] = {
    "session": _of_new("session"),
    "workspace": _equal("workspace"),
    "uid": _equal("uid"),
    "gid": _equal("gid"),
    "idmap_from": _equal("idmap_from"),
    "started_ns": _of_new("started_ns"),
    "path": _both("path"),
    "held": _things,
    "resumed": lambda old, _: old.session,
    "unasked": _unasked,
    "guarded": _both("guarded"),
}
RULES_OF_THING: Final[dict[str, Callable[[Held, Held], Any]]] = {
    "name": _equal("name"),
    "kind": _equal("kind"),
    "path": _equal("path"),
    "why": _of_new("why"),
    "deliver": _word,
    "commands": _both("commands"),
}
