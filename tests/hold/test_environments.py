"""Folders of commands that come first in PATH once somebody activates or runs them."""

from pathlib import Path

import pytest

from jail.hold.change import PLAIN, REFUSED, WARNED, Change
from support.changed import change, kept, link

ENVIRONMENT = {"env/pyvenv.cfg": b"home = /usr/bin"}
CASES: dict[str, tuple[Change, dict[str, bytes | str | None], str]] = {
    "a git in an environment": (change("env/bin/git"), ENVIRONMENT, REFUSED),
    "a shell in npm's folder": (change("pkg/node_modules/.bin/sh"), {}, REFUSED),
    "one in other case": (change("pkg/Node_Modules/.bin/SH"), {}, REFUSED),
    "a script in the place of python": (change("env/bin/python"), ENVIRONMENT, REFUSED),
    "a link to a script": (
        change("env/bin/git", new=link()),
        {**ENVIRONMENT, "env/bin/git": "../evil"},
        REFUSED,
    ),
    "a link to the program, as venv makes it": (
        change("env/bin/sh", new=link()),
        {**ENVIRONMENT, "env/bin/sh": "/usr/bin/sh"},
        WARNED,
    ),
    "a link to the one beside it": (
        change("env/bin/sh3", new=link()),
        {**ENVIRONMENT, "env/bin/sh3": "sh"},
        PLAIN,
    ),
    "a link to itself by another way": (
        change("env/bin/sh", new=link()),
        {**ENVIRONMENT, "env/bin/sh": "/usr/bin/../../tmp/sh"},
        REFUSED,
    ),
    "a link to another program": (
        change("env/bin/sh", new=link()),
        {**ENVIRONMENT, "env/bin/sh": "/usr/bin/cat"},
        REFUSED,
    ),
    "a tool of its own": (change("env/bin/no-such-tool"), ENVIRONMENT, PLAIN),
    "a folder that is of no environment": (change("scripts/sh"), {}, PLAIN),
    "by its usual name, whatever is in it": (change(".venv/bin/sh"), {}, REFUSED),
    "a PATH entry that was not there": (change("late/sh"), {}, REFUSED),
}


@pytest.mark.parametrize("case", CASES)
def test_what_would_be_a_command_of_the_host_is_refused(tmp_path: Path, case: str) -> None:
    found, new, tier = CASES[case]
    workspace = tmp_path / "ws"
    made = kept(tmp_path / "session", workspace, {}, {**new}, path=[f"{workspace}/late", "/nowhere"])
    (judged,) = made.review(found).changes
    assert judged.tier == tier, judged.reason
    assert ("shadows" in judged.reason) == (tier == REFUSED)


def test_a_pyvenv_cfg_that_the_host_has_counts_too(tmp_path: Path) -> None:
    made = kept(tmp_path / "session", tmp_path / "ws", ENVIRONMENT, {})
    (judged,) = made.review(change("env/bin/sh")).changes
    assert judged.tier == REFUSED
