"""Links of the host that lead to what a change touches."""

from pathlib import Path

import pytest

from jail.hold import base, leads, review
from jail.hold.change import PLAIN, REFUSED, WARNED
from support.changed import Kept, held_session
from support.ledgers import state_in

HOST: dict[str, bytes | str | None] = {
    "Makefile": "build/rules",
    ".husky": "tools/husky",
    "s/CLAUDE.md": "../ag/mem",
    "RESEARCH.md": "docs/findings",
    ".envrc": "one",
    "one": "two",
    "GNUmakefile": "build/absent",
    "plain": "docs/other",
    ".git/hooks/pre-push": "../../tools/check",
    ".git/HEAD": b"ref: refs/heads/main\n",
    "tools/check": b"",
    "build/rules": b"all:\n",
    "tools/husky/pre-commit": b"",
    "ag/mem": b"",
    "docs/findings": b"",
    "docs/other": b"",
    "two": b"",
}
LEFT: dict[str, bytes | str | None] = {
    "build/rules": b"all: evil\n",
    "build/absent": b"x",
    "build/more": b"x",
    "tools/husky/pre-commit": b"evil",
    "tools/husky/sub/x": b"evil",
    "ag/mem": b"obey",
    "docs/findings": b"lie",
    "docs/other": b"x",
    "two": b"x",
    "tools/check": b"evil",
}


@pytest.fixture
def session(tmp_path: Path) -> Kept:
    return held_session(state_in(tmp_path), tmp_path / "ws", HOST, LEFT)


def test_what_a_link_leads_to_has_the_tier_of_its_name(session: Kept) -> None:
    found = {each.path: (each.tier, each.reason) for each in review.reviewed(str(session.folder)).changes}
    assert {path: tier for path, (tier, _) in found.items()} == {
        "ag/mem": REFUSED,
        "build/absent": WARNED,
        "build/more": PLAIN,
        "build/rules": WARNED,
        "docs/findings": REFUSED,
        "docs/other": PLAIN,
        "tools/check": REFUSED,
        "tools/husky/pre-commit": REFUSED,
        "tools/husky/sub": REFUSED,
        "tools/husky/sub/x": REFUSED,
        "two": WARNED,
    }
    assert found["ag/mem"][1] == "s/CLAUDE.md leads there: instructions or settings of an agent"
    assert found["build/rules"][1] == "Makefile leads there: make runs it"
    assert found["tools/husky/pre-commit"][1] == ".husky/pre-commit leads there: hooks of git"


def test_no_more_links_than_a_bound_are_looked_at(session: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leads, "LINKS", 0)
    assert {each.tier for each in review.reviewed(str(session.folder)).changes} == {PLAIN}


def test_links_are_looked_for_once(session: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    symlinks = base.symlinks
    monkeypatch.setattr(base, "symlinks", lambda *each: asked.append(each) or symlinks(*each))
    leading = leads.of_host(str(session.folder), session.manifest)
    assert asked == []
    whole = str(session.workspace)
    assert leading(f"{whole}/build/rules") == (f"{whole}/Makefile",)
    assert leading(f"{whole}/build") == (f"{whole}/Makefile", f"{whole}/GNUmakefile")
    assert leading(f"{whole}/tools/husky/a") == (f"{whole}/.husky/a",)
    assert leading(f"{whole}/x") == ()
    assert len(asked) == 1
