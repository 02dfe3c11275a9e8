from typing import Any

import pytest

from jail.ledger.entries import KINDS
from jail.report.words import LINE_WIDTH, sentence

SENTENCES: dict[str, tuple[str, dict[str, Any], str]] = {
    "a start": (
        "start",
        {"command": ["make", "a b"], "workspace": "/w", "policy": "overnight", "losses": ["landlock"]},
        "started: make 'a b' in /w, policy overnight, without landlock",
    ),
    "walls that hold": ("probes", {"results": {"umount": [True, "EPERM"]}}, "1 walls tried: all hold"),
    "a wall that does not": (
        "probes",
        {"results": {"umount": [False, "it worked"], "keys": [True, "EPERM"]}},
        "2 walls tried: open: umount (it worked)",
    ),
    "the run": ("running", {}, "the command runs"),
    "what was moved away": (
        "swept",
        {"path": "/w/.envrc", "kind": "file", "moved_to": "swept/1", "why_not": None},
        "protected, and made inside: /w/.envrc (file): moved to swept/1",
    ),
    "what could not be": (
        "swept",
        {"path": "/w/.envrc", "kind": "file", "moved_to": None, "why_not": "stuck"},
        "protected, and made inside: /w/.envrc (file): not moved: stuck",
    ),
    "what runs by itself": (
        "changed",
        {"path": "Makefile", "kind": "make runs it", "digest": None, "tier": "warned"},
        "changed: Makefile: make runs it",
    ),
    "what is graver": (
        "changed",
        {"path": "CLAUDE.md", "kind": "instructions of an agent", "digest": None, "tier": "refused"},
        "changed; runs by itself: CLAUDE.md: instructions of an agent",
    ),
    "a restored mount": (
        "restored",
        {"path": "/w/.git/config", "digest_before": "a", "digest_after": "b", "window_s": 0.0021},
        "protection back after 0.002 s: /w/.git/config, and its content is another",
    ),
    "a limit": ("limit", {"which": "timeout", "detail": "90 s"}, "limit reached: timeout 90 s"),
    "a join": (
        "joined",
        {"join": 2, "command": ["bash"], "pid": 7, "probes_held": 20, "terminal": True},
        "joined 2: bash on a terminal, process 7 inside",
    ),
    "its end": ("left", {"join": 2, "exit": 7, "signal": 0, "reason": "exited"}, "left 2: exit 7, exited"),
    "its end with the session": (
        "left",
        {"join": 2, "exit": None, "signal": 0, "reason": "the session ended"},
        "left 2: the session ended",
    ),
    "a stop": ("stopped", {"grace_s": 10.0}, "told to stop, and to be killed after 10s"),
    "what is held": (
        "held",
        {"changes": 12, "tiers": {"refused": 2, "warned": 1}, "letters": {"A": 12}, "conflicts": 1},
        "held: 12 changes wait (2 refused, 1 warned, 1 in conflict); A 12",
    ),
    "what was delivered, and one that waits": (
        "held",
        {
            "changes": 1,
            "tiers": {"never": 1},
            "letters": {"A": 1},
            "conflicts": 0,
            "delivered": 3,
            "delivered_warned": 2,
        },
        "held: 3 changes delivered (2 warned), 1 change waits (1 that cannot be applied); A 1",
    ),
    "nothing held": (
        "held",
        {"changes": 0, "tiers": {}, "letters": {}, "conflicts": 0},
        "held: no changes",
    ),
    "a change that was applied": (
        "applied",
        {
            "path": "/w/a",
            "what": "added",
            "tier": "",
            "reason": "",
            "digest_before": "",
            "digest_after": "ab",
        },
        "applied: added /w/a",
    ),
    "a renamed one that was refused": (
        "refused",
        {"path": "/w/a", "what": "renamed", "source": "/w/b", "tier": "refused", "reason": "a hook"},
        "refused: renamed /w/b to /w/a (refused: a hook)",
    ),
    "an apply that begins": (
        "applying",
        {"apply": "ab12", "becomes": "applied", "changes": 3, "digest": "ff"},
        "applying 3 changes (apply ab12)",
    ),
    "one that is over": (
        "settled",
        {"apply": "ab12", "outcome": "applied", "applied": 2, "refused": 1},
        "apply ab12 is over: 2 applied, 1 refused",
    ),
    "one that was taken back": (
        "settled",
        {"apply": "ab12", "outcome": "taken back", "applied": 0, "refused": 0},
        "apply ab12 is over: taken back",
    ),
    "who took what was held": (
        "resumed",
        {"by": "20261130-1"},
        "resumed by 20261130-1, which has what was held",
    ),
    "an end": (
        "end",
        {"exit": 1, "reason": "exited", "duration_s": 12.34, "cpu_s": 0.5},
        "ended: exit 1, exited; 12.3 s, 0.5 s of processor time",
    ),
    "a kind of another version": ("pushed", {"number": 3, "host": "x"}, "pushed: host=x number=3"),
    "fields of another type": ("end", {"exit": {"a": 1}, "cpu_s": "long"}, "end: cpu_s=long exit={'a': 1}"),
    "no fields": ("start", {}, "start:"),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_an_entry_is_one_sentence(case: str) -> None:
    kind, fields, told = SENTENCES[case]
    assert sentence(kind, fields) == told


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_and_no_type_makes_it_fail(kind: str) -> None:
    names = (*KINDS[kind].required, *KINDS[kind].optional)
    for value in (None, 1, 1.5, "x", [], ["x"], {}, {"a": [1]}, "x" * 10_000, 10**400):
        assert sentence(kind, dict.fromkeys(names, value))
        assert len(sentence(kind, dict.fromkeys(names, value))) < LINE_WIDTH + 1
