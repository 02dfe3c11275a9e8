import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jail.ledger import beside, chain
from jail.ledger.beside import Mark
from support.ledgers import state_in, write

SESSION = "20261130-141502-k3f9x2ab"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / SESSION
    made.mkdir()
    return made


def test_where_nothing_lies_nothing_is_said(folder: Path) -> None:
    assert beside.read(str(folder)) == (None, "", "", (), 0, 0.0)
    assert beside.sessions_named(str(folder)) == {}


def test_a_session_of_the_writer_has_a_head_and_two_records(tmp_path: Path) -> None:
    made, _ = write(state_in(tmp_path), notes=2)
    found = beside.read(str(made))
    assert found.head is not None
    assert found.head.seq == 3
    assert [mark.seq for mark in found.records] == [0, 3]
    assert found.records[1] == found.head
    assert beside.sessions_named(state_in(tmp_path)) == {made.name: 0.0}


HEAD_FAULTS = {
    "empty": b"",
    "garbage": b"\xff\0",
    "no newline": chain.head(SESSION, 3, "ab")[:-1],
    "blank at the end": chain.head(SESSION, 3, "ab")[:-1] + b" ",
    "more behind": chain.head(SESSION, 3, "ab") + b"{}",
    "negative": chain.head(SESSION, -3, "ab"),
    "deep": b"[" * 4000,
    "list": b"[]\n",
    "long": b"x" * 100_000,
}


@pytest.mark.parametrize("name", HEAD_FAULTS)
def test_a_head_that_jail_did_not_write_is_a_fault(folder: Path, name: str) -> None:
    (folder / "head").write_bytes(HEAD_FAULTS[name])
    found = beside.read(str(folder))
    assert found.head is None
    assert "not as jail writes it" in found.head_fault


@pytest.mark.parametrize("what", ["pipe", "link", "folder"])
def test_a_head_that_is_no_file_is_a_fault(folder: Path, what: str) -> None:
    if what == "pipe":
        os.mkfifo(folder / "head")
    elif what == "link":
        (folder / "head").symlink_to("/dev/zero")
    else:
        (folder / "head").mkdir()
    assert beside.read(str(folder)).head_fault


def test_lines_of_the_index_that_cannot_be_read_are_counted_and_passed(folder: Path) -> None:
    good = chain.record(SESSION, 0, "ab", 1.5)
    index = (
        b"\xff\n\n" + good + b"x" * 10_000 + b"\n" + good[:-20] + b"\n" + chain.record("other", 5, "cd", 2.0)
    )
    (folder.parent / "heads.jsonl").write_bytes(index + good[:-30])
    found = beside.read(str(folder))
    assert found.records == (Mark(0, "ab"),)
    assert found.record_faults == 5


def test_records_of_one_session_are_bounded(folder: Path) -> None:
    index = b"".join(chain.record(SESSION, n, "ab", 1.5) for n in range(1000))
    (folder.parent / "heads.jsonl").write_bytes(index)
    assert len(beside.read(str(folder)).records) == beside.RECORDS_LIMIT


@pytest.mark.parametrize(
    ("line", "removed"),
    [
        (chain.removal(SESSION, 7.5), 7.5),
        (chain.removal("20261130-141502-aaaaaaaa", 7.5), 0.0),
        (chain.removal(SESSION, 7.5).replace(b"true", b"1"), 0.0),
        (chain.removal(SESSION, -7.5), 0.0),
        (chain.removal(SESSION, 7.5).replace(b"7.5", b"NaN"), 0.0),
        (chain.removal(SESSION, 7.5).replace(b"7.5", b'"7.5"'), 0.0),
        (chain.removal(SESSION, 7.5) + chain.record(SESSION, 3, "ab", 9.0), 7.5),
    ],
)
def test_the_index_says_when_gc_removed_a_session(folder: Path, line: bytes, removed: float) -> None:
    (folder.parent / "heads.jsonl").write_bytes(line)
    assert beside.read(str(folder)).removed == removed


@given(raw=st.binary())
def test_no_bytes_beside_a_ledger_raise(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    folder = tmp_path_factory.getbasetemp() / "beside" / SESSION
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "head").write_bytes(raw)
    (folder.parent / "heads.jsonl").write_bytes(raw)
    assert beside.read(str(folder)).head is None
