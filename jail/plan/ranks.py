"""What a rule may do where it really leads: nothing, read, write what is held, or write.

Rule: policies compare paths as they are written, and a link makes two of one. So where links are followed,
`hold`, `read` and `hide` win over what gives more through another name of the same place, a project's entry
lies in what the person gives at that place, and what the person wants read-only is there, whatever a project
hides.
"""

from jail.light import Final
from jail.plan.facts import Facts, Place
from jail.plan.trees import refusal
from jail.policy.paths import beneath

_READ: Final = 1
_HOLD: Final = 2
_WRITE: Final = 3
_RANKS: Final = {"hide": 0, "system": _READ, "read": _READ, "hold": _HOLD, "write": _WRITE}
_MAY: Final = ("not at all", "for reading", "to be held")


def judge(facts: Facts) -> None:
    """Raise JailError for a rule that gives more, by the links on its way, than its text says."""
    for verb, places, lesser in (
        ("write", facts.write, (("hold", facts.hold), ("read", facts.read))),
        ("hold", facts.hold, (("read", facts.read),)),
        ("read", facts.read, ()),
    ):
        for place in places:
            _within_allowed(facts, place, verb)
            for says, rules in lesser:
                for rule in rules:
                    _through_another_name(place, verb, rule, says)
            _not_hidden(place, verb, facts.hide)
    for place in facts.hold:
        for verb, places in (("write", facts.write), ("read", facts.read)):
            for other in places:
                _at_once(place, verb, other)
    for verb, place in facts.allowed:
        if verb == "read" and place.real_kind not in ("file", "folder"):
            # A project that hides it does not make it less than the person asked for.
            where, hint = f"files.read: {place.given}", "name a file or folder that is there"
            raise refusal(f"{place.given} is {place.real_kind}", where, hint)


def _within_allowed(facts: Facts, place: Place, verb: str) -> None:
    """What a project names is given by the person, at the place where it leads."""
    rank = _rank(facts, place.real) if place.project else _WRITE
    if rank < _RANKS[verb]:
        what = (
            f"a project's file names {place.given}, which leads to {place.real}: you give that {_MAY[rank]}"
        )
        raise refusal(
            what, f"files.{verb}: {place.given}", "look at what the project's file says, and at that link"
        )


def _rank(facts: Facts, path: str) -> int:
    """What the person gives at a canonical path: the nearest rule above it decides, of two the lesser."""
    rules = [
        (len(folder), -_RANKS[verb])
        for verb, place in facts.allowed
        for folder in {place.path, place.real}
        if folder and not place.strays and beneath(path, folder)
    ]
    return -max(rules, default=(0, 0))[1]


def _through_another_name(place: Place, verb: str, rule: Place, says: str) -> None:
    """A rule beneath another one says so in its text, or it is not meant."""
    alias = place.given != place.real and not beneath(place.given, rule.given)
    if alias and rule.real and beneath(place.real, rule.real):
        _refuse(place, verb, rule, says, rule.real)


def _at_once(place: Place, verb: str, other: Place) -> None:
    """Two names of one place with two verbs: nobody can tell which of the two was meant."""
    if place.real and place.real == other.real:
        what = f"{place.given} is held, and {verb} = {other.given} names the same place: {place.real}"
        raise refusal(what, f"files.hold: {place.given}", "take one of the two rules out")


def _not_hidden(place: Place, verb: str, hide: tuple[Place, ...]) -> None:
    for rule in hide:
        for folder in (rule.path, rule.real):
            if folder and beneath(place.real, folder):
                _refuse(place, verb, rule, "hide", folder)


def _refuse(place: Place, verb: str, rule: Place, says: str, folder: str) -> None:
    what = f"{place.given} leads to {place.real}, which lies in {folder}, and {says} = {rule.given}"
    raise refusal(what, f"files.{verb}: {place.given}", "take one of the two rules out")
