"""The end of a run that holds something: who delivers what, what is said, and what a crash leaves."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from jail.hold import decisions, look, review, store
from jail.hold.change import ADDED, DELETED, NEVER, REFUSED, RENAMED, WARNED, Change
from jail.hold.journal import COMMITTED, Journal
from jail.hold.review import Review
from jail.hold.store import Manifest
from jail.launch import deliver
from jail.ledger.entries import KINDS
from jail.plan.held import COMMANDS, OVERLAY, Held
from support import changed
from support.ledgers import state_in, write
from support.overlays import Session

VENV = Held("t0", OVERLAY, "/w/.venv", "a PATH folder", COMMANDS, ("/w/.venv/bin",))
OTHER = Held("t1", OVERLAY, "/w/node_modules", "hard links")


def held(*changes: Change) -> Review:
    manifest = Manifest("s", "/w", 1, 1, -1, 7, (), (VENV, OTHER), unasked=("t0",))
    things = {thing.name: thing for thing in manifest.held}
    return Review("/s", manifest, changes, {}, things, {})


CHANGES = {
    "a tool": (changed.change("bin/tool"), (COMMANDS,), True),
    "by no word of the policy": (changed.change("bin/tool"), (), False),
    "by another word": (changed.change("bin/tool"), ("git-config",), False),
    "one that is warned of": (changed.change("lib/setup.py", tier=WARNED), (COMMANDS,), True),
    "one that runs uncalled": (changed.change("lib/x.pth", tier=WARNED, waits=True), (COMMANDS,), False),
    "a plain one that waits": (changed.change("bin/git", DELETED, waits=True), (COMMANDS,), False),
    "one that shadows": (changed.change("bin/git", tier=REFUSED), (COMMANDS,), False),
    "a device": (changed.change("dev", tier=NEVER), (COMMANDS,), False),
    "one that the host changed": (changed.change("a", conflict="the host changed it"), (COMMANDS,), False),
    "one of another tree": (changed.change("a", tree="t1"), (COMMANDS,), False),
    "a removal": (changed.change("a", DELETED), (COMMANDS,), True),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_the_policy_delivers_unasked(case: str) -> None:
    change, words, delivered = CHANGES[case]
    assert deliver.chosen_of(held(change), words) == ((change,) if delivered else ())


def test_a_thing_that_waited_once_waits() -> None:
    found = held(changed.change("bin/tool"))
    waiting = found._replace(manifest=found.manifest._replace(unasked=()))
    assert deliver.chosen_of(waiting, (COMMANDS,)) == ()


def test_what_lies_in_a_folder_that_waits_waits_with_it() -> None:
    folder = changed.change("hooks", new=changed.FOLDER, tier=REFUSED)
    inner = changed.change("hooks/a")
    assert deliver.chosen_of(held(folder, inner), (COMMANDS,)) == ()


MANY = (
    changed.change("a"),
    changed.change("b", tier=REFUSED),
    changed.change("c", tier=REFUSED),
    changed.change("d", RENAMED, tier=WARNED, source="e"),
    changed.change("f", DELETED, conflict="the host changed it"),
    changed.change("g", tier=NEVER),
)
ASIDE = "(1 that cannot be applied, 2 refused, 1 warned, 1 in conflict)"
LINES: dict[str, tuple[tuple[Change, ...], tuple[Change, ...], str]] = {
    "nothing": ((), (), ""),
    "all was delivered": ((), (MANY[0],) * 3, "held: 3 changes delivered"),
    "some of it was warned of": ((), (MANY[0], MANY[3]), "held: 2 changes delivered (1 warned)"),
    "one waits": (MANY[:1], (), "held: 1 change waits; jail changes s"),
    "some of each": (MANY, MANY[:1], f"held: 1 change delivered, 6 changes wait {ASIDE}; jail changes s"),
}


@pytest.mark.parametrize("case", LINES)
def test_one_line_says_how_much_waits(case: str) -> None:
    waiting, delivered, line = LINES[case]
    assert deliver.told(deliver.counts(waiting, delivered), "s") == line


def test_the_entry_counts_and_its_digest_is_that_of_the_list() -> None:
    found = deliver.counts(MANY, (MANY[0], MANY[3]))
    assert found["changes"] == 6
    assert (found["delivered"], found["delivered_warned"]) == (2, 1)
    assert found["tiers"] == {REFUSED: 2, WARNED: 1, NEVER: 1}
    assert found["letters"] == {"A": 4, "R": 1, "D": 1}
    assert found["conflicts"] == 1
    assert set(found) == {*KINDS["held"].required, *KINDS["held"].optional}
    others = [deliver.counts(each)["digest"] for each in (MANY[1:], (*MANY[:5], MANY[5]._replace(path="h")))]
    assert len({found["digest"], *others}) == 3
    assert deliver.counts(MANY)["digest"] == found["digest"]


class Said:
    """What launch.record.Record would have written and said."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.lines: list[str] = []
        self.counts: dict[str, Any] = {}

    def note(self, text: str) -> None:
        self.notes.append(text)

    def tell(self, message: str) -> None:
        self.lines.append(message)

    def held(self, **counts: object) -> None:
        self.counts = dict(counts)


class Run:
    """A run that is over: it held a virtual environment, and left a tool and a git in it."""

    def __init__(self, folder: Path) -> None:
        self.tree = folder / "venv"
        (self.tree / "bin").mkdir(parents=True)
        self.folder = write(state_in(folder))[0]
        self.session = session = Session(self.folder, self.tree, OVERLAY)
        thing = VENV._replace(path=str(self.tree), commands=(f"{self.tree}/bin",))
        self.manifest = session.manifest._replace(
            session=self.folder.name, held=(thing,), path=(f"{self.tree}/bin", "/usr/bin"), unasked=("t0",)
        )
        store.write_manifest(str(session.held), self.manifest)
        session.snapshot()
        session.run("for name in tool true; do echo '#!/bin/sh' > bin/$name; chmod +x bin/$name; done")
        self.said = Said()

    def settle(self, *words: str) -> None:
        site = deliver.Site(str(self.folder), self.folder.name, words, None)
        deliver.settle(site, self.said)  # type: ignore[arg-type]  # what of a Record is needed

    def reviewed(self) -> list[tuple[str, str]]:
        """Kind and path of each entry of the review ledger."""
        path = self.folder / "review.jsonl"
        entries = [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []
        return [(each["kind"], each["fields"]["path"]) for each in entries if "path" in each["fields"]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_a_tool_is_delivered_and_what_shadows_a_command_waits(run: Run) -> None:
    run.settle(COMMANDS)
    assert os.listdir(run.tree / "bin") == ["tool"]
    assert run.reviewed() == [("delivered", f"{run.tree}/bin/tool")]
    assert (run.said.counts["changes"], run.said.counts["tiers"]) == (1, {REFUSED: 1})
    (line,) = run.said.lines
    assert line == f"held: 1 change delivered, 1 change waits (1 refused); jail changes {run.folder.name}"
    assert run.said.notes == []


def test_what_python_runs_at_each_start_waits_and_the_rest_of_a_package_comes(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And all of it is looked at once."""
    run.session.run(
        "mkdir -p lib/site/pkg; cd lib/site; touch x.pth sitecustomize.py pkg/setup.py pkg/code.py"
    )
    real, calls = look.changes, []

    def counted(*words: Any) -> tuple[Change, ...]:
        calls.append(words)
        return real(*words)

    monkeypatch.setattr(look, "changes", counted)
    run.settle(COMMANDS)
    assert len(calls) == 1
    assert sorted(os.listdir(run.tree / "lib/site/pkg")) == ["code.py", "setup.py"]
    assert os.listdir(run.tree / "lib/site") == ["pkg"]
    counts = run.said.counts
    assert (counts["changes"], counts["delivered"], counts["delivered_warned"]) == (3, 6, 1)
    assert run.said.lines[0].startswith(
        "held: 6 changes delivered (1 warned), 3 changes wait (1 refused, 2 warned)"
    )
    left = review.reviewed(str(run.folder)).changes
    assert {each.path for each in left} == {"bin/true", "lib/site/sitecustomize.py", "lib/site/x.pth"}
    assert deliver.counts(left)["digest"] == counts["digest"], "what is counted is what a second look finds"


def test_without_a_word_nothing_is_touched(run: Run) -> None:
    run.settle()
    assert os.listdir(run.tree / "bin") == []
    assert run.reviewed() == []
    assert run.said.counts["changes"] == 2


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyError("a defect")])
def test_an_error_is_said_and_noted_and_all_waits(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(decisions, "carry_out", failing)
    run.settle(COMMANDS)
    assert os.listdir(run.tree / "bin") == []
    assert "was not delivered" in run.said.notes[0]
    assert run.said.lines[0] == run.said.notes[0]
    assert run.said.counts["changes"] == 2
    assert "2 changes wait" in run.said.lines[1]


def test_what_cannot_be_listed_is_said_and_waits(run: Run) -> None:
    (run.folder / "held" / "manifest").write_bytes(b"damaged")
    run.settle(COMMANDS)
    assert "cannot be listed" in run.said.notes[0]
    assert run.said.counts == {}
    assert (run.folder / "held/t0/upper/bin/tool").exists()


def test_a_crash_during_delivery_is_finished_by_the_next_apply(run: Run) -> None:
    pid = os.fork()
    if pid == 0:
        real = Journal.say

        def dying(self: Journal, state: str) -> None:
            real(self, state)
            if state == COMMITTED:
                os._exit(9)

        Journal.say = dying  # type: ignore[method-assign]  # in this child alone
        run.settle(COMMANDS)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    assert os.listdir(run.tree / "bin") == []
    done = decisions.finished(str(run.folder), run.manifest)
    assert done is not None
    assert [change.path for change in done.applied] == ["bin/tool"]
    assert os.listdir(run.tree / "bin") == ["tool"]
    assert run.reviewed() == [("delivered", f"{run.tree}/bin/tool")]
    (waiting,) = review.reviewed(str(run.folder)).changes
    assert (waiting.path, waiting.what, waiting.tier) == ("bin/true", ADDED, REFUSED)
