"""Why a path is not given: what it holds, or what it lies in.

Rule: the workspace, the policy's own paths, PATH and toolchains are all judged here, from names alone. The
relation says how a path may meet jail's own files and the credentials: `overlaps` where what is given must
not hold one either, `beneath` where what it holds is hidden in it.
"""

from jail.light import Callable
from jail.plan.facts import Facts
from jail.policy.paths import beneath, overlaps


def withheld(
    path: str,
    home: str,
    own: tuple[str, ...],
    credentials: tuple[str, ...],
    relation: Callable[[str, str], bool],
) -> str:
    """Why the canonical `path` must not be given, as the end of a sentence about it; "" where it may be."""
    if relation is overlaps and beneath(home, path):
        return "holds the home folder"
    for what, places in (("jail's own files", own), ("credentials", credentials)):
        for other in places:
            if relation(path, other):
                return f"{'holds' if beneath(other, path) else 'lies in'} {what}: {other}"
    return ""


def found_withheld(path: str, facts: Facts, relation: Callable[[str, str], bool]) -> str:
    """The same as a sentence, for what PATH leads to: nobody has named it, so it holds neither home nor
    workspace.
    """
    for what, folder in (("the home folder", facts.home), ("the workspace", facts.workspace.real)):
        if beneath(folder, path):
            return f"it holds {what}"
    why = withheld(path, facts.home, facts.own, facts.credentials, relation)
    return f"it {why}" if why else ""
