"""The last line of scripts/test: `N passed, N failed, N skipped` over all runs of pytest in one folder.

Rule: counts come from the junit files, never from pytest's own text; a run that left none, or that pytest
ended with an error of its own, counts as failed. Exit code 1 when anything failed, when nothing ran, or,
where CI=true, when anything was skipped: a skip nobody looks at is a test nobody has.
"""

import os
import sys
from typing import NamedTuple
from xml.etree import ElementTree as ET

NO_TESTS_COLLECTED = 5
"""pytest's exit code (pytest.ExitCode) where the selection was empty: one of two runs may be."""
RAN_TO_THE_END = (0, 1, NO_TESTS_COLLECTED)


class Counts(NamedTuple):
    """How many tests ended how."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0


def counts_of(report: str, status: int) -> Counts:
    """The counts in the junit file `report` of a pytest that exited with `status`."""
    try:
        suites = list(ET.parse(report).getroot().iter("testsuite"))  # noqa: S314 - written by our own pytest
    except (OSError, ET.ParseError):
        return Counts(failed=1)
    total, failed, skipped = (
        sum(int(suite.get(key, 0)) for suite in suites for key in keys)
        for keys in (("tests",), ("failures", "errors"), ("skipped",))
    )
    crashed = int(status not in RAN_TO_THE_END and not failed)
    return Counts(max(total - failed - skipped, 0), failed + crashed, skipped)


def main(folder: str) -> int:
    """Print the sum over `folder`/NAME.status and `folder`/NAME/report.xml; the exit code of scripts/test."""
    runs = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".status"):
            with open(os.path.join(folder, name), encoding="ascii") as file:
                status = int(file.read())
            runs.append(counts_of(os.path.join(folder, name.removesuffix(".status"), "report.xml"), status))
    passed, failed, skipped = (sum(column) for column in zip(*runs, strict=True))
    sys.stdout.write(f"{passed} passed, {failed} failed, {skipped} skipped\n")
    skips_count = os.environ.get("CI") == "true"
    return int(bool(failed or not (passed or skipped) or (skips_count and skipped)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
