"""The limits that end a run: when each is met, what the command is told, and what is said at the end.

The clock and what is measured are the test's; what real bombs meet is in tests/escape/test_bombs.py.
"""

import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jail.errors import JailError
from jail.launch import init, limits, outcome
from jail.launch.limits import GRACE, SETUP_LIMIT, FileTable, Limits
from jail.launch.outcome import Outcome
from jail.launch.quota import Quota
from jail.launch.watch import Look
from jail.plan.build import build
from support.hosts import FACTS, POLICY

TERM = (init.TO_PROCESS, signal.SIGTERM)
FINE = Look(over=False, room=1 << 40, crowded=False, said="")


class Bench:
    """Limits with a clock of our own, beside a record, processes and streams that only take notes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, group: str = "", timeout: float = 100.0) -> None:
        self.now = 1000.0
        self.look = FINE
        monkeypatch.setattr(limits.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(limits, "_open_files", lambda: self.open_files)
        monkeypatch.setattr(Limits, "_watching", lambda _: SimpleNamespace(look=lambda: self.look))
        self.open_files = (1000, 1 << 62)
        self.orders: list[tuple[bytes, int]] = []
        self.entries: list[tuple[str, str]] = []
        self.quota = Quota(100)
        self.record: Any = SimpleNamespace(
            keeps=False, full=False, limit=lambda *entry: self.entries.append(entry)
        )
        processes: Any = SimpleNamespace(order=lambda *order: self.orders.append(order))
        streams: Any = SimpleNamespace(quota=self.quota)
        plan = build(POLICY._replace(timeout=timeout), FACTS, ("true",))
        self.limits = Limits(plan, group, processes, streams)

    def after(self, seconds: float) -> Outcome | None:
        self.now += seconds
        return self.limits.check(self.record)

    def ended(self, found: Outcome | None) -> Outcome | None:
        return self.limits.ended(found, self.record)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    found = Bench(monkeypatch)
    found.limits.start()
    return found


def test_walls_that_are_not_built_in_time_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch)
    assert bench.limits.timeout == SETUP_LIMIT
    assert bench.after(SETUP_LIMIT - 1) is None
    with pytest.raises(JailError, match="not built within"):
        bench.after(1)


def test_when_the_time_is_over_the_command_is_told_and_after_the_grace_all_is_killed(bench: Bench) -> None:
    assert bench.after(99) is None
    assert bench.orders == []
    assert bench.after(1) is None
    assert bench.orders == [TERM]
    assert bench.entries == [("timeout", "100s")]
    assert bench.after(GRACE - 1) is None
    assert bench.orders == [TERM], "it is told once"
    assert bench.after(1) == Outcome(124, outcome.TIMEOUT, signal.SIGKILL)


@pytest.mark.parametrize("status", [Outcome(0, outcome.EXITED), Outcome(143, outcome.KILLED, 15)])
def test_a_command_that_takes_the_word_has_the_limits_exit_code_too(bench: Bench, status: Outcome) -> None:
    bench.after(100)
    found = bench.ended(status)
    assert found == status._replace(code=124, reason=outcome.TIMEOUT)


def test_no_timeout_is_never(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, group="/none", timeout=0.0)
    bench.limits.start()
    assert bench.limits.timeout is None, "with a group, nothing is looked at either"
    assert bench.after(1e9) is None


def output(bench: Bench) -> None:
    bench.quota.left = -1


def held(bench: Bench) -> None:
    bench.record.keeps = bench.record.full = True


@pytest.mark.parametrize(
    ("meet", "which", "reason"), [(output, "output", outcome.OUTPUT), (held, "held", outcome.KEPT_BACK)]
)
def test_a_limit_other_than_time_is_137_and_named(bench: Bench, meet: Any, which: str, reason: str) -> None:
    assert bench.after(2) is None
    meet(bench)
    assert bench.after(2) is None
    assert bench.orders == [TERM]
    assert bench.entries == [(which, "more than 1 GiB")]
    found = bench.ended(Outcome(0, outcome.EXITED))
    assert found == Outcome(137, reason, 0, "more than 1 GiB")
    assert bench.after(GRACE) == Outcome(137, reason, signal.SIGKILL)


def test_the_first_limit_counts(bench: Bench) -> None:
    output(bench)
    bench.after(1)
    held(bench)
    bench.after(2)
    assert [which for which, _ in bench.entries] == ["output"]


def test_more_memory_than_allowed_kills_at_once_in_the_grace_of_another_limit_too(bench: Bench) -> None:
    output(bench)
    assert bench.after(1) is None
    bench.look = Look(over=True, room=0, crowded=False, said="9 GiB in 3 processes")
    assert bench.after(2) == Outcome(137, outcome.MEMORY, signal.SIGKILL)
    assert bench.entries[-1] == ("memory", "more than 8 GiB: 9 GiB in 3 processes")


def test_the_nearer_the_limit_the_sooner_the_next_look_and_a_look_that_takes_long_comes_seldom(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = []
    for room, took in ((1 << 40, 0.0), (512 << 20, 0.0), (0, 0.0), (0, 0.1)):
        bench.look = FINE._replace(room=room)

        def look(took: float = took) -> Look:
            bench.now += took
            return bench.look

        monkeypatch.setattr(Limits, "_watching", lambda _, look=look: SimpleNamespace(look=look))
        bench.after(2)
        waits.append(bench.limits.timeout)
    assert waits == pytest.approx([1.0, 0.25, 0.02, 2.0])


def test_a_host_whose_files_are_taken_kills_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, group="/none")
    bench.open_files = (1000, 100_000)
    bench.limits = Limits(bench.limits._plan, "/none", bench.limits._processes, bench.limits._streams)
    bench.limits.start()
    assert bench.after(2) is None
    bench.open_files = (60_000, 100_000)
    assert bench.after(2) == Outcome(137, outcome.FILES, signal.SIGKILL)
    assert bench.entries == [("open_files", "half of what the host can open")]


@pytest.mark.parametrize(
    ("before", "now", "short"),
    [(1000, 49_000, False), (1000, 51_000, True), (40_000, 51_000, False), (40_000, 70_000, True)],
)
def test_the_table_of_open_files(
    before: int, now: int, *, short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_open_files", lambda: (before, 100_000))
    table, out_of_reach = FileTable(1 << 20), FileTable(20_000)
    monkeypatch.setattr(limits, "_open_files", lambda: (now, 100_000))
    assert table.short() is short
    assert not out_of_reach.within_reach
    assert not out_of_reach.short()


def group(tmp_path: Path, kills: int, refused: int) -> str:
    (tmp_path / "memory.events").write_text(f"oom_kill {kills}\n")
    (tmp_path / "pids.events").write_text(f"max {refused}\n")
    (tmp_path / "memory.peak").write_text("5000\n")
    return str(tmp_path)


KILLED = Outcome(137, outcome.KILLED, signal.SIGKILL)


@pytest.mark.parametrize(
    ("kills", "found", "reason"),
    [
        (3, None, outcome.MEMORY),  # all at once, process 1 too
        (3, KILLED, outcome.MEMORY),
        (3, Outcome(1, outcome.EXITED), outcome.EXITED),
        (0, KILLED, outcome.KILLED),
    ],
)
def test_what_the_kernel_killed_for_want_of_memory_is_called_so(
    kills: int, found: Outcome | None, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(monkeypatch, group(tmp_path, kills, 0))
    bench.limits.start()
    ended = bench.ended(found)
    assert ended is not None
    assert (ended.reason, ended.peak) == (reason, 5000)
    if reason == outcome.MEMORY:
        assert (ended.code, ended.signal, ended.detail) == (137, signal.SIGKILL, "more than 8 GiB")
        assert bench.entries == [("memory", "more than 8 GiB: ended by the kernel")]


def test_an_end_that_no_limit_explains_stays_unexplained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Bench(monkeypatch, group(tmp_path, 0, 0)).ended(None) is None
    assert Bench(monkeypatch).ended(None) is None


def test_forks_that_the_kernel_refused_are_told_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(monkeypatch, group(tmp_path, 0, 7))
    bench.limits.start()
    assert bench.ended(Outcome(0, outcome.EXITED)) == Outcome(
        0, outcome.EXITED, 0, "the limit of 4096 processes was reached", 0.0, 5000
    )
    assert bench.entries == [("processes", "4096, 7 times")]


def test_without_a_group_a_look_notices_the_processes(bench: Bench) -> None:
    bench.look = FINE._replace(crowded=True)
    bench.after(2)
    bench.look = FINE
    bench.after(2)
    found = bench.ended(Outcome(0, outcome.EXITED))
    assert found is not None
    assert "4096 processes" in found.detail
    assert bench.entries == [("processes", "4096, seen by a look")]
