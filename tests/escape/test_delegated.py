"""H: the bombs in control groups that were delegated, on hosts that have none to delegate.

Rule: the tests are those of test_bombs.py that are marked `groups`, run by pytest in a Linux kernel of their
own (support.uml) that has control groups of version 2 with all controllers. Here each is named and judged by
what that pytest reported; one that was skipped or not named counts as failed.
"""

import os
import platform
import shlex
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from support import shared, uml
from support.installed import CHECKOUT, Installed

pytestmark = [
    pytest.mark.root,
    pytest.mark.kernel,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="User Mode Linux exists for x86 only"),
]

BOMB = "test_h1_h2_in_a_delegated_group_a_bomb_is_ended_and_named_by_the_kernel"
NAMES = (
    f"{BOMB}[memory-a user]",
    f"{BOMB}[memory-root]",
    f"{BOMB}[processes-a user]",
    f"{BOMB}[processes-root]",
    f"{BOMB}[files in memory-a user]",
    f"{BOMB}[files in memory-root]",
    f"{BOMB}[descriptors-a user]",
    f"{BOMB}[descriptors-root]",
    f"{BOMB}[output-a user]",
    f"{BOMB}[output-root]",
    f"{BOMB}[memory in no process-a user]",
    "test_all_that_runs_inside_is_in_the_group_and_the_supervisor_is_not",
    "test_after_sigkill_of_the_supervisor_an_empty_group_is_left_and_found",
)

# What was installed for this suite serves the one inside as well; the rest of its shared folder is its own.
COMMANDS = """
    mkdir /run/outside
    mount --bind {shared} /run/outside
    mount -t tmpfs -o mode=755 tmpfs {shared}
    cd {shared}
    mkdir -p wheel installation/venv home tmp
    for made in wheel installation/venv; do
        mount --bind /run/outside/$made $made
        touch $made.done
    done
    cd {checkout}
    env {environment} {pytest} -m groups --junitxml=/run/findings/report.xml tests/escape/test_bombs.py
"""


def judged(report: Path) -> dict[str, str]:
    """Test → "passed", or what a junit file says instead."""
    found = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        wrong = [one for one in case if one.tag in ("failure", "error", "skipped")]
        found[case.get("name", "")] = "".join(f"{one.tag}: {one.text}" for one in wrong) or "passed"
    return found


def commands(folder: Path) -> str:
    environment = {
        shared.VARIABLE: folder,
        "HOME": folder / "home",
        "TMPDIR": folder / "tmp",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    pytest_inside = (sys.executable, "-P", "-m", "pytest", "-p", "no:xdist", "--color=no")
    return COMMANDS.format(
        shared=shlex.quote(str(folder)),
        checkout=shlex.quote(str(CHECKOUT)),
        environment=shlex.join(f"{name}={value}" for name, value in environment.items()),
        pytest=shlex.join(pytest_inside),
    )


@pytest.fixture(scope="module")
def ended(shared_folder: Path, installed: Installed) -> uml.Ended:
    """One boot for all processes of this suite, whatever comes of it."""

    def make(folder: Path) -> None:
        ended = uml.boot(folder, commands(shared_folder))
        (folder / "console").write_text(ended.console)

    folder = shared.once(shared_folder / "kernel", make)
    return uml.Ended((folder / "console").read_text(), folder / "findings")


@pytest.fixture(scope="module")
def verdicts(ended: uml.Ended) -> dict[str, str]:
    report = ended.findings / "report.xml"
    return judged(report) if report.exists() else {}


@pytest.mark.parametrize("name", NAMES)
def test_in_a_kernel_with_control_groups_it_passes(verdicts: dict[str, str], name: str) -> None:
    assert verdicts.get(name, "was not run; the last test shows the console") == "passed"


def test_nothing_else_was_asked_of_that_kernel_and_it_ended_by_itself(
    ended: uml.Ended, verdicts: dict[str, str]
) -> None:
    assert "ended: 0" in ended.console.splitlines(), ended.console
    assert set(verdicts) == set(NAMES)


def test_what_failed_or_was_skipped_in_there_has_not_passed(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite><testcase name="held"/><testcase name="open"><failure>it is</failure></testcase>'
        '<testcase name="absent"><skipped>no groups</skipped></testcase></testsuite></testsuites>'
    )
    assert judged(report) == {"held": "passed", "open": "failure: it is", "absent": "skipped: no groups"}
