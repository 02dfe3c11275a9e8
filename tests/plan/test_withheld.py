"""Why a path is not given, by how it may meet jail's own files and credentials."""

import pytest

from jail.plan.withheld import found_withheld, withheld
from jail.policy.paths import beneath, overlaps
from support.hosts import FACTS, HOME, WORKSPACE

OWN, SECRET = f"{HOME}/.local/state/jail", f"{HOME}/.ssh"

PATHS = {
    # path: why what must not hold a secret is not given; why what has secrets hidden in it is not given
    f"{SECRET}/keys": (f"lies in credentials: {SECRET}", f"lies in credentials: {SECRET}"),
    SECRET: (f"holds credentials: {SECRET}", f"holds credentials: {SECRET}"),
    f"{OWN}/sessions": (f"lies in jail's own files: {OWN}", f"lies in jail's own files: {OWN}"),
    f"{HOME}/.local": (f"holds jail's own files: {OWN}", ""),
    HOME: ("holds the home folder", ""),
    "/home": ("holds the home folder", ""),
    "/": ("holds the home folder", ""),
    f"{SECRET}-not": ("", ""),
    f"{HOME}/data": ("", ""),
    WORKSPACE: ("", ""),
}


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_judged_by_what_it_holds_and_what_it_lies_in(path: str) -> None:
    found = tuple(withheld(path, HOME, (OWN,), (SECRET,), relation) for relation in (overlaps, beneath))
    assert found == PATHS[path]


@pytest.mark.parametrize("relation", [overlaps, beneath])
@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/home", "it holds the home folder"),
        (WORKSPACE, "it holds the workspace"),
        (f"{HOME}/src", "it holds the workspace"),
        (f"{WORKSPACE}/bin", ""),
        (f"{SECRET}/bin", f"it lies in credentials: {SECRET}"),
    ],
)
def test_what_path_leads_to_holds_neither_home_nor_workspace(
    path: str, reason: str, relation: object
) -> None:
    facts = FACTS._replace(own=(OWN,), credentials=(SECRET,))
    assert found_withheld(path, facts, relation) == reason  # type: ignore[arg-type]


def test_control_one_relation_is_wider() -> None:
    wider = [path for path, (strict, hidden) in PATHS.items() if strict and not hidden]
    assert len(wider) == 4
