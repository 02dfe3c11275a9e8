import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jail.errors import JailError
from jail.ledger import appending, chain, heads, review
from jail.ledger.reader import verify
from jail.ledger.review import ReviewLedger
from support.installed import CHECKOUT
from support.ledgers import REVIEWED, state_in, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A session that ended, and was not reviewed yet."""
    return write(state_in(tmp_path))[0]


def append(folder: Path, *kinds: str) -> None:
    opened = ReviewLedger.open(str(folder), folder.name)
    for number, kind in enumerate(kinds):
        opened.append(kind, **{**REVIEWED, "path": f"/w/{number}"})
    opened.close()


def entries(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "review.jsonl").read_bytes().splitlines()]


def test_it_goes_on_where_it_ended_and_its_marks_with_it(folder: Path) -> None:
    append(folder, "applied", "refused")
    append(folder)
    append(folder, "discarded")
    found = entries(folder)
    assert [(entry["seq"], entry["kind"]) for entry in found] == [
        (0, "applied"),
        (1, "refused"),
        (2, "discarded"),
    ]
    assert found[0]["prev"] == chain.first(folder.name, heads.REVIEW) != chain.first(folder.name)
    assert json.loads((folder / "review.head").read_bytes())["seq"] == 2
    index = [json.loads(line) for line in (folder.parent / "heads.jsonl").read_bytes().splitlines()]
    assert [line["seq"] for line in index if line.get("ledger") == "review"] == [1, 2]
    assert stat.S_IMODE((folder / "review.jsonl").stat().st_mode) == 0o600
    assert verify(str(folder)).state == "intact"


@pytest.mark.parametrize("kind", ["start", "end", "swept", "guessed"])
def test_only_the_kinds_of_a_review_are_written(folder: Path, kind: str) -> None:
    opened = ReviewLedger.open(str(folder), folder.name)
    with pytest.raises(JailError, match="defect in jail"):
        opened.append(kind)
    opened.close()
    assert (folder / "review.jsonl").read_bytes() == b""
    assert not (folder / "review.head").exists()


def test_one_writer_at_a_time(folder: Path) -> None:
    first = ReviewLedger.open(str(folder), folder.name)
    with pytest.raises(JailError, match="another process is at the changes"):
        ReviewLedger.open(str(folder), folder.name)
    first.close()
    first.close()
    append(folder, "applied")
    with pytest.raises(JailError, match="takes no more"):
        first.append("applied", **REVIEWED)


PLANTED: dict[str, Callable[[Path], object]] = {
    "a link": lambda path: path.symlink_to(path.with_name("ledger.jsonl")),
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a file that others may write": lambda path: (path.touch(), path.chmod(0o622)),
    "a file with two names": lambda path: (path.touch(), os.link(path, f"{path}.2")),
}


@pytest.mark.parametrize("what", PLANTED)
def test_what_was_planted_in_its_place_is_not_written(folder: Path, what: str) -> None:
    PLANTED[what](folder / "review.jsonl")
    with pytest.raises(JailError, match="review ledger"):
        ReviewLedger.open(str(folder), folder.name)


Change = Callable[[list[bytes]], list[bytes]]
CHANGES: dict[str, tuple[Change, str]] = {
    "an edited line": (lambda ls: [ls[0].replace(b"/w/0", b"/w/9"), *ls[1:]], "review: line 1: edited"),
    "an edited last line": (lambda ls: [*ls[:3], ls[3].replace(b"/w/3", b"/w/9")], "review: line 4: edited"),
    "a removed line": (lambda ls: [ls[0], *ls[2:]], "review: line 2: entry 2 is here"),
    "swapped lines": (lambda ls: [ls[0], ls[2], ls[1], ls[3]], "review: line 2: entry 2 is here"),
    "a cut end": (lambda ls: ls[:3], "review: the head file names entry 3"),
    "all of it": (lambda _: [], "review: the head file names entry 3"),
    "a forged line at the end of another": (
        lambda ls: [*ls[:3], chain.line(3, 1.0, "note", {"text": "x"}, chain.digest(ls[2][:-1])) + b"\n"],
        "review: entry 3 is not the one that the head file names",
    ),
    "the run's first line": (
        lambda _: [chain.line(0, 1.0, "note", {"text": "x"}, chain.first("x")) + b"\n"],
        "review: line 1: the first entry does not follow from the id",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_somebody_changed_is_found_by_jail_verify(
    folder: Path, name: str, run_verify: Callable[[Path], tuple[int, str]]
) -> None:
    append(folder, "applied", "applied", "refused", "delivered")
    assert run_verify(folder)[0] == 0
    change, told = CHANGES[name]
    file = folder / "review.jsonl"
    file.write_bytes(b"".join(change(file.read_bytes().splitlines(keepends=True))))
    code, text = run_verify(folder)
    assert code == 1
    assert told in text


@pytest.fixture
def run_verify(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], tuple[int, str]]:
    from click.testing import CliRunner

    from jail.cli.verify import command

    def run(folder: Path) -> tuple[int, str]:
        found = CliRunner().invoke(command, [str(folder)], catch_exceptions=False)
        return found.exit_code, found.output

    return run


@pytest.mark.parametrize(
    "name", ["an edited last line", "a cut end", "all of it", "a forged line at the end of another"]
)
def test_nothing_is_appended_to_a_damaged_end(folder: Path, name: str) -> None:
    append(folder, "applied", "applied", "refused", "delivered")
    file = folder / "review.jsonl"
    file.write_bytes(b"".join(CHANGES[name][0](file.read_bytes().splitlines(keepends=True))))
    before = file.read_bytes()
    with pytest.raises(JailError, match="not as jail left it") as caught:
        ReviewLedger.open(str(folder), folder.name)
    assert "jail verify" in caught.value.hint
    assert file.read_bytes() == before


def test_a_missing_file_is_found_by_its_marks(
    folder: Path, run_verify: Callable[[Path], tuple[int, str]]
) -> None:
    append(folder, "applied")
    (folder / "review.jsonl").unlink()
    assert "review: there is none" in run_verify(folder)[1]
    (folder / "review.head").unlink()
    assert "the index of sessions knows entry 0" in run_verify(folder)[1]
    with pytest.raises(JailError, match="not as jail left it"):
        ReviewLedger.open(str(folder), folder.name)


KILLED = """
import os, sys
from jail.ledger.review import ReviewLedger
opened = ReviewLedger.open(sys.argv[1], sys.argv[2])
for number in range(3):
    opened.append("applied", **{fields!r})
os.write(opened._fd, b'{{"fields":{{"path":"/w/ha')
print("half", flush=True)
sys.stdin.read()
"""


def test_after_kill_9_with_half_a_line_it_goes_on_and_says_so(folder: Path) -> None:
    append(folder, "applied")
    program = [sys.executable, "-c", KILLED.format(fields=REVIEWED), str(folder), folder.name]
    pipe = subprocess.PIPE
    with subprocess.Popen(program, cwd=CHECKOUT, stdin=pipe, stdout=pipe) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"half\n"
        found = verify(str(folder))
        assert found.state == "intact"
        assert found.review is not None
        assert [remark.partition(":")[0] for remark in found.review.remarks] == [
            "3 entries after the last mark",
            "line 5 is half written",
        ]
        running.send_signal(signal.SIGKILL)
    append(folder, "discarded")
    assert [entry["kind"] for entry in entries(folder)] == ["applied"] * 4 + ["note", "discarded"]
    assert "24 bytes" in str(entries(folder)[4]["fields"])
    found = verify(str(folder))
    assert (found.state, found.review and found.review.remarks) == ("intact", ())


def test_a_disk_that_is_full_takes_no_half_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(folder, "applied")
    before = (folder / "review.jsonl").read_bytes()
    opened = ReviewLedger.open(str(folder), folder.name)

    def full(fd: int, raw: bytes) -> None:
        os.write(fd, raw[:10])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(heads, "write_whole", full)
        with pytest.raises(JailError, match="No space left"):
            opened.append("applied", **REVIEWED)
    assert (folder / "review.jsonl").read_bytes() == before
    opened.append("applied", **REVIEWED)
    opened.close()
    assert verify(str(folder)).state == "intact"


def test_a_full_ledger_keeps_room_for_a_note(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review, "LEDGER_LIMIT", appending.RESERVE + 1000)
    opened = ReviewLedger.open(str(folder), folder.name)
    opened.append("applied", **REVIEWED)
    with pytest.raises(JailError, match="full"):
        opened.append("applied", **{**REVIEWED, "path": "x" * 600})
    opened.append("note", text="no more is recorded")
    opened.close()


def test_fifty_thousand_entries_take_time_linear_in_their_number(folder: Path) -> None:
    """No timed assert: a quadratic writer would take minutes for these, a linear one about two seconds."""
    opened = ReviewLedger.open(str(folder), folder.name)
    began = time.process_time()
    for number in range(50_000):
        opened.append("applied", **{**REVIEWED, "path": f"/w/{number}"})
    opened.close()
    print(f"{time.process_time() - began:.1f} s for 50,000 entries")
    append(folder, "applied")
    found = verify(str(folder))
    assert found.review is not None
    assert (found.state, found.review.entries) == ("intact", 50_001)
