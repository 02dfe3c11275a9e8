import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jail.errors import JailError
from jail.kernel.digest import sha256_hex as digest
from jail.ledger import chain
from jail.ledger.entries import ENTRY_LIMIT
from jail.ledger.judging import PROBLEMS_LIMIT
from jail.ledger.reader import Result, glance, read, verify
from support.ledgers import END, START, state_in, write

Change = Callable[[list[bytes]], list[bytes]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A session of six lines: start, four notes, end."""
    return write(state_in(tmp_path), notes=4)[0]


@pytest.fixture
def crashed(tmp_path: Path) -> Path:
    return write(state_in(tmp_path), notes=4, end=False)[0]


def rewrite(folder: Path, change: Change) -> Result:
    file = folder / "ledger.jsonl"
    file.write_bytes(b"".join(change(file.read_bytes().splitlines(keepends=True))))
    return verify(str(folder))


def rechained(lines: list[bytes], at: int, **fields: object) -> list[bytes]:
    """The lines with other fields in line `at` and every hash from there made anew, as a careful forger
    would."""
    found = [json.loads(line) for line in lines]
    found[at]["fields"].update(fields)
    for number in range(at, len(found)):
        entry = found[number]
        prev = digest(lines[number - 1].rstrip(b"\n")) if number else entry["prev"]
        raw = chain.line(entry["seq"], entry["time"], entry["kind"], entry["fields"], prev)
        lines = [*lines[:number], raw + b"\n", *lines[number + 1 :]]
    return lines


def test_a_whole_session_is_intact(folder: Path) -> None:
    found = verify(str(folder))
    assert found.state == "intact"
    assert (found.ok, found.complete, found.running, found.entries) == (True, True, False, 6)
    assert (found.problems, found.remarks, found.session) == ((), (), folder.name)
    assert found.start is not None
    assert found.start.fields["command"] == START["command"]
    assert found.end is not None
    assert found.end.fields == END
    assert found.last == digest((folder / "ledger.jsonl").read_bytes().splitlines()[-1])


CHANGES: dict[str, tuple[Change, int, str]] = {
    "an edited byte": (lambda ls: [*ls[:2], ls[2].replace(b"note 1", b"note 7"), *ls[3:]], 3, "edited"),
    "an edited first line": (lambda ls: [ls[0].replace(b"pytest", b"pytesu"), *ls[1:]], 1, "edited"),
    "an edited last line": (lambda ls: [*ls[:5], ls[5].replace(b'"exit":0', b'"exit":1')], 6, "edited"),
    "a removed line": (lambda ls: [*ls[:2], *ls[3:]], 3, "entry 2 should follow: lines are missing"),
    "a removed first line": (lambda ls: ls[1:], 1, "entry 0 should follow: lines are missing"),
    "two swapped lines": (lambda ls: [*ls[:2], ls[3], ls[2], *ls[4:]], 3, "entry 2 should follow"),
    "a line twice": (lambda ls: [*ls[:3], ls[2], *ls[3:]], 4, "entry 2 is here again"),
    "an old line at the end": (lambda ls: [*ls, ls[2]], 7, "entry 2 is here again"),
    "garbage put in": (lambda ls: [*ls[:3], b"\xff\0garbage\n", *ls[3:]], 4, "not an entry"),
    "an empty line put in": (lambda ls: [*ls[:3], b"\n", *ls[3:]], 4, "not an entry"),
    "an over-long line": (
        lambda ls: [*ls[:3], b"x" * (ENTRY_LIMIT + 1) + b"\n", *ls[3:]],
        4,
        "longer than any",
    ),
    "two lines made one": (lambda ls: [*ls[:2], ls[2].rstrip(b"\n"), *ls[3:]], 3, "not an entry"),
    "carriage returns": (lambda ls: [line.replace(b"\n", b"\r\n") for line in ls], 1, "edited"),
    "a cut end": (lambda ls: ls[:5], 0, "the head file names entry 5, but the file has 5 entries"),
    "an end cut in its middle": (lambda ls: [*ls[:5], ls[5][:-9]], 0, "its end is cut off"),
    "all of it cut": (lambda _: [], 0, "the file is empty"),
    "a byte after the end": (lambda ls: [*ls, b"x"], 7, "half a line after the end entry"),
    "a line after the end": (
        lambda ls: [*ls, chain.line(6, 1.0, "note", {"text": "x"}, digest(ls[5][:-1])) + b"\n"],
        7,
        "an entry after the end entry",
    ),
    "a forged line put in": (
        lambda ls: [*ls[:3], chain.line(3, 1.0, "note", {"text": "x"}, digest(ls[2][:-1])) + b"\n", *ls[3:]],
        5,
        "entry 3 is here again",
    ),
    "a forged line in place of one": (
        lambda ls: [*ls[:3], chain.line(3, 1.0, "note", {"text": "x"}, digest(ls[2][:-1])) + b"\n", *ls[4:]],
        5,
        "does not follow from the line before it",
    ),
    "a note forged and all hashes made anew": (
        lambda ls: rechained(ls, 2, text="all passed"),
        6,
        "index of sessions",
    ),
    "an end forged": (
        lambda ls: rechained(ls, 5, exit=0, reason="x"),
        0,
        "not the one that the head file names",
    ),
    "a start forged": (lambda ls: rechained(ls, 0, losses=[]), 1, "index of sessions"),
    "another session's ledger": (lambda ls: rechained(ls, 0, session="x"), 1, "does not follow from the id"),
    "no start entry": (
        lambda ls: [chain.line(0, 1.0, "note", {"text": "x"}, chain.first("")) + b"\n", *ls[1:]],
        1,
        "'start' comes first",
    ),
    "a file of zeros": (lambda ls: [bytes(len(b"".join(ls)))], 0, "its end is cut off"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_somebody_changed_is_found_and_named(folder: Path, name: str) -> None:
    change, line, what = CHANGES[name]
    found = rewrite(folder, change)
    assert found.state == "broken"
    assert any(problem.line == line and what in problem.what for problem in found.problems), found.problems


@pytest.mark.parametrize("name", ["an edited byte", "a removed line", "a line twice", "garbage put in"])
def test_one_deed_is_one_problem(folder: Path, name: str) -> None:
    assert rewrite(folder, CHANGES[name][0]).problem_count <= 2


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    folder = write(state_in(tmp_path_factory.mktemp("fuzzed")), notes=4)[0]
    return folder, (folder / "ledger.jsonl").read_bytes()


@settings(max_examples=400)
@given(data=st.data(), flip=st.integers(1, 255))
def test_an_edit_of_any_single_byte_is_found(
    fuzzed: tuple[Path, bytes], data: st.DataObject, flip: int
) -> None:
    folder, raw = fuzzed
    at = data.draw(st.integers(0, len(raw) - 1))
    (folder / "ledger.jsonl").write_bytes(raw[:at] + bytes([raw[at] ^ flip]) + raw[at + 1 :])
    assert verify(str(folder)).state == "broken"


@settings(max_examples=400)
@given(data=st.data(), flip=st.integers(1, 255))
def test_an_edit_of_any_single_byte_of_a_copy_alone_is_found(
    fuzzed: tuple[Path, bytes], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, flip: int
) -> None:
    raw = fuzzed[1]
    at = data.draw(st.integers(0, len(raw) - 1))
    copy = tmp_path_factory.getbasetemp() / "copy.jsonl"
    copy.write_bytes(raw[:at] + bytes([raw[at] ^ flip]) + raw[at + 1 :])
    # Of the very last byte, a newline, only its absence shows: half a line, hence no end.
    assert verify(str(copy)).state == ("incomplete" if at == len(raw) - 1 else "broken")


@settings(max_examples=200)
@given(data=st.data())
def test_a_cut_at_any_byte_is_found(fuzzed: tuple[Path, bytes], data: st.DataObject) -> None:
    folder, raw = fuzzed
    (folder / "ledger.jsonl").write_bytes(raw[: data.draw(st.integers(0, len(raw) - 1))])
    assert verify(str(folder)).state == "broken"


@settings(max_examples=200)
@given(data=st.data(), flip=st.integers(1, 255))
def test_an_edit_of_any_single_byte_of_the_head_file_is_found(
    fuzzed: tuple[Path, bytes], data: st.DataObject, flip: int
) -> None:
    folder, raw = fuzzed
    (folder / "ledger.jsonl").write_bytes(raw)
    head = (folder / "head").read_bytes()
    at = data.draw(st.integers(0, len(head) - 1))
    try:
        (folder / "head").write_bytes(head[:at] + bytes([head[at] ^ flip]) + head[at + 1 :])
        assert verify(str(folder)).state == "broken"
    finally:
        (folder / "head").write_bytes(head)


@settings(max_examples=300)
@given(raw=st.binary() | st.lists(st.sampled_from([b"{}", b"\n", b'{"seq":', b"[", b"\xff"])).map(b"".join))
def test_no_bytes_raise_and_none_verify(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "hostile.jsonl"
    file.write_bytes(raw)
    found = verify(str(file))
    assert found.state != "intact"
    assert found.entries == 0
    assert list(read(str(file))) == []


def test_a_copy_of_the_file_alone_can_be_verified(folder: Path, tmp_path: Path) -> None:
    for name in ("copy.jsonl", "ledger.jsonl"):
        copy = tmp_path / "elsewhere" / name
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(folder / "ledger.jsonl", copy)
        found = verify(str(copy))
        assert (found.state, found.session, found.entries) == ("intact", folder.name, 6)
        assert found.remarks == ("no head file beside it: only its own end entry says that nothing follows",)


def test_a_copy_cut_between_lines_is_never_called_intact(folder: Path, tmp_path: Path) -> None:
    lines = (folder / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    copy = tmp_path / "copy.jsonl"
    for kept in range(1, 6):
        copy.write_bytes(b"".join(lines[:kept]))
        found = verify(str(copy))
        assert (found.state, found.entries) == ("incomplete", kept)
        assert found.remarks == ("no head file beside it: a cut tail cannot be ruled out",)


def test_a_copied_folder_verifies_with_its_head_under_any_name(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "backup"
    shutil.copytree(folder, copy)
    assert verify(str(copy)).state == "intact"
    assert verify(f"{copy}/").remarks == ()
    wrong = tmp_path / "20200101-000000-00000000"
    shutil.copytree(folder, wrong)
    found = verify(str(wrong))
    assert found.state == "broken"
    assert "this is the ledger of session" in found.problems[0].what


def test_a_cut_end_whose_head_file_is_gone_too_is_known_to_the_index(folder: Path) -> None:
    (folder / "head").unlink()
    found = rewrite(folder, lambda lines: lines[:5])
    assert found.state == "broken"
    assert found.problems == (
        (0, "the index of sessions knows entry 5, but the file has 5 entries: its end is cut off"),
    )


def test_a_session_folder_that_is_gone_is_known_to_the_index(folder: Path) -> None:
    shutil.rmtree(folder)
    found = verify(str(folder))
    assert found.state == "broken"
    assert any("No such file" in problem.what for problem in found.problems)


def test_an_index_that_is_gone_is_no_proof_of_anything(folder: Path) -> None:
    (folder.parent / "heads.jsonl").unlink()
    assert verify(str(folder)).state == "intact"


def test_damage_in_the_index_is_a_remark(folder: Path) -> None:
    with (folder.parent / "heads.jsonl").open("ab") as out:
        out.write(b"\xff\n")
    found = verify(str(folder))
    assert (found.state, found.remarks) == ("intact", ("1 lines of the index of sessions cannot be read",))


def test_a_running_session_is_incomplete_and_says_so(tmp_path: Path) -> None:
    folder, lock = write(state_in(tmp_path), end=False, keep_lock=True)
    try:
        found = verify(str(folder))
        assert (found.state, found.running, found.remarks) == ("incomplete", True, ())
        assert rewrite(folder, lambda lines: [*lines, b'{"fields"']).state == "incomplete"
    finally:
        os.close(lock)


def test_a_crashed_session_is_incomplete_and_its_doubt_is_said(crashed: Path) -> None:
    found = verify(str(crashed))
    assert (found.state, found.running, found.entries) == ("incomplete", False, 5)
    assert found.remarks == ("no head file beside it: a cut tail cannot be ruled out",)


def test_half_a_line_of_a_killed_writer_is_a_remark(crashed: Path) -> None:
    found = rewrite(crashed, lambda lines: [*lines[:4], lines[4][:-1]])
    assert (found.state, found.entries) == ("incomplete", 4)
    assert "line 5 is half written" in found.remarks[0]


def test_a_crashed_session_cut_to_nothing_is_known_to_the_index(crashed: Path) -> None:
    assert rewrite(crashed, lambda _: []).state == "broken"


def test_a_kind_of_a_later_version_is_a_remark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jail.ledger.entries import KINDS, Kind

    with monkeypatch.context() as patched:
        patched.setitem(KINDS, "exec", Kind("program", ("argv",)))
        folder, _ = write(state_in(tmp_path), notes=0, end=False)
        lines = (folder / "ledger.jsonl").read_bytes().splitlines()
        raw = chain.line(1, 1.0, "exec", {"argv": []}, digest(lines[-1]))
    (folder / "ledger.jsonl").write_bytes(lines[0] + b"\n" + raw + b"\n")
    found = verify(str(folder))
    assert found.state == "incomplete"
    assert "does not know: exec" in found.remarks[1]


@pytest.mark.parametrize("what", ["nothing", "pipe", "link", "folder", "device"])
def test_what_is_no_ledger_is_broken_and_nothing_hangs(tmp_path: Path, what: str) -> None:
    file = tmp_path / "ledger.jsonl"
    if what == "pipe":
        os.mkfifo(file)
    elif what == "link":
        file.symlink_to("/dev/zero")
    elif what == "folder":
        file.mkdir()
    path = "/dev/zero" if what == "device" else str(tmp_path)
    found = verify(path)
    assert found.state == "broken"
    assert found.problems[0].what.startswith("cannot read the ledger")


def test_a_path_with_odd_bytes_is_an_answer_too() -> None:
    assert verify("a\0b").state == "broken"
    assert verify("/nowhere/\udcff").state == "broken"


def test_problems_are_bounded_and_counted(tmp_path: Path) -> None:
    file = tmp_path / "garbage.jsonl"
    file.write_bytes(b"x\n" * 5000)
    found = verify(str(file))
    assert len(found.problems) == PROBLEMS_LIMIT
    assert found.problem_count == 5000


def test_memory_is_bounded_however_long_the_ledger_is(tmp_path: Path) -> None:
    import tracemalloc

    folder, _ = write(state_in(tmp_path), notes=20_000)
    assert (folder / "ledger.jsonl").stat().st_size > 4_000_000
    tracemalloc.start()
    try:
        assert verify(str(folder)).entries == 20_002
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()


def test_read_gives_the_entries_of_a_folder_or_a_file_and_leaves_out_garbage(folder: Path) -> None:
    kinds = ["start", "note", "note", "note", "note", "end"]
    assert [entry.kind for entry in read(str(folder))] == kinds
    rewrite(folder, lambda lines: [lines[0], b"\xff\n", b"x" * 300_000 + b"\n", *lines[1:]])
    assert [entry.kind for entry in read(str(folder / "ledger.jsonl"))] == kinds
    with pytest.raises(JailError, match="cannot read the ledger"):
        next(read(str(folder / "absent")))


def test_a_glance_reads_the_two_ends(folder: Path, crashed: Path) -> None:
    start, end = glance(str(folder))
    assert start is not None
    assert end is not None
    assert (start.fields["pid"], end.fields["exit"]) == (4711, 0)
    start, end = glance(str(crashed))
    assert start is not None
    assert end is None


@pytest.mark.parametrize("raw", [b"", b"\n", b"\xff" * 600_000, b"{}\n{}\n"])
def test_a_glance_at_garbage_sees_nothing(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "ledger.jsonl").write_bytes(raw)
    assert glance(str(tmp_path)) == (None, None)
    assert glance(str(tmp_path / "absent")) == (None, None)
