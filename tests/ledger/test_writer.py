import errno
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jail.errors import JailError
from jail.kernel.digest import sha256_hex as digest
from jail.ledger import chain, heads, place, writer
from jail.ledger.reader import verify
from jail.ledger.writer import Ledger
from support.ledgers import END, START, state_in, write

SESSION = "20261130-141502-k3f9x2ab"
CHECKOUT = str(Path(writer.__file__).parents[2])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "sessions" / SESSION
    made.mkdir(parents=True)
    return made


@pytest.fixture
def ledger(folder: Path) -> Ledger:
    return Ledger.create(str(folder), SESSION)


def started(ledger: Ledger) -> Ledger:
    ledger.append("start", **START)
    return ledger


def entries(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "ledger.jsonl").read_bytes().splitlines()]


def test_a_whole_session_is_a_chain_of_private_append_only_lines(folder: Path, ledger: Ledger) -> None:
    before = time.time()
    started(ledger)
    ledger.append("swept", path="x", kind="hook", digest="ab", moved_to="y", why_not=None)
    ledger.append("end", **END)
    ledger.close()
    raw = (folder / "ledger.jsonl").read_bytes()
    lines = raw.splitlines()
    found = [json.loads(line) for line in lines]
    assert [(entry["seq"], entry["kind"]) for entry in found] == [(0, "start"), (1, "swept"), (2, "end")]
    assert [entry["prev"] for entry in found] == [chain.first(SESSION), digest(lines[0]), digest(lines[1])]
    assert found[0]["fields"] == {**START, "session": SESSION}
    assert before - 1 < found[0]["time"] < time.time() + 1
    assert raw.endswith(b"}\n")
    assert stat.S_IMODE((folder / "ledger.jsonl").stat().st_mode) == 0o600
    assert sorted(os.listdir(folder)) == ["head", "ledger.jsonl"]
    index = (folder.parent / "heads.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["hash"] for line in index] == [digest(lines[0]), digest(lines[2])]


@pytest.mark.parametrize("what", ["file", "link", "dangling link"])
def test_what_lies_there_already_is_neither_followed_nor_overwritten(folder: Path, what: str) -> None:
    target = folder / "target"
    if what != "dangling link":
        target.write_bytes(b"precious")
    if what == "file":
        target.rename(folder / "ledger.jsonl")
    else:
        (folder / "ledger.jsonl").symlink_to(target)
    with pytest.raises(JailError, match="create the ledger") as caught:
        Ledger.create(str(folder), SESSION)
    assert "EEXIST" in caught.value.where
    assert target.exists() == (what == "link")


def test_a_folder_that_is_a_link_or_absent_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    for path in (tmp_path / "link", tmp_path / "absent"):
        with pytest.raises(JailError, match="create the ledger"):
            Ledger.create(str(path), SESSION)
    assert os.listdir(folder) == []


def test_no_descriptor_of_the_ledger_passes_an_exec(ledger: Ledger) -> None:
    assert not os.get_inheritable(ledger._fd)
    assert not os.get_inheritable(ledger._folder_fd)


@pytest.mark.parametrize("first", ["note", "end", "running"])
def test_the_first_entry_is_the_start(folder: Path, ledger: Ledger, first: str) -> None:
    fields = {"note": {"text": "x"}, "end": END, "running": {}}[first]
    with pytest.raises(JailError, match="defect in jail: entry 0"):
        ledger.append(first, **fields)
    assert (folder / "ledger.jsonl").read_bytes() == b""


def test_start_comes_once_and_nothing_after_end_or_close(folder: Path, ledger: Ledger) -> None:
    started(ledger)
    with pytest.raises(JailError, match="defect in jail"):
        ledger.append("start", **START)
    ledger.append("end", **END)
    for kind, fields in (("note", {"text": "x"}), ("end", END)):
        with pytest.raises(JailError, match="takes no more: it has its end entry"):
            ledger.append(kind, **fields)
    ledger.close()
    ledger.close()
    with pytest.raises(JailError, match="takes no more"):
        ledger.append("note", text="x")
    assert [entry["kind"] for entry in entries(folder)] == ["start", "end"]


def test_a_defect_of_the_caller_leaves_the_chain_as_it_was(folder: Path, ledger: Ledger) -> None:
    started(ledger)
    for fields in ({}, {"text": object()}, {"text": "x", "more": 1}):
        with pytest.raises(JailError, match="defect in jail"):
            ledger.append("note", **fields)
    ledger.append("end", **END)
    assert [entry["kind"] for entry in entries(folder)] == ["start", "end"]
    assert verify(str(folder)).state == "intact"


def test_one_entry_is_one_write(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    started(ledger)
    sizes: list[int] = []
    real = os.write

    def counted(fd: int, raw: bytes) -> int:
        sizes.append(len(raw))
        return real(fd, raw)

    monkeypatch.setattr(os, "write", counted)
    ledger.append("note", text="x" * 60_000)
    assert len(sizes) == 1
    assert sizes[0] > 60_000


@pytest.mark.parametrize(("seconds", "syncs"), [(0.1, 0), (3600.0, 2)])
def test_only_the_end_of_a_long_session_waits_for_the_disk(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, seconds: float, syncs: int
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    started(ledger)
    ledger.append("note", text="x")
    ledger.append("running")
    assert synced == []
    monkeypatch.setattr(ledger, "_started", ledger._started - seconds)
    ledger.append("end", **END)
    assert len(synced) == syncs  # the ledger's own, and the head file's


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("taken", [0, 1, 100])
def test_a_line_that_the_disk_takes_in_part_is_taken_back(
    folder: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, number: int, taken: int
) -> None:
    started(ledger)
    before = (folder / "ledger.jsonl").read_bytes()
    real = os.write
    calls = iter([taken, 0])

    def full(fd: int, raw: bytes) -> int:
        size = next(calls)
        if size == 0:
            raise OSError(number, os.strerror(number))
        return real(fd, raw[:size])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(JailError, match="cannot write to the ledger") as caught:
            ledger.append("note", text="x" * 1000)
    assert errno.errorcode[number] in caught.value.where
    assert caught.value.hint
    assert (folder / "ledger.jsonl").read_bytes() == before
    ledger.append("end", **END)
    assert verify(str(folder)).state == "intact"


def test_after_half_a_line_that_stays_nothing_follows(
    folder: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    started(ledger)
    real = os.write
    calls = iter([10, 0])

    def full(fd: int, raw: bytes) -> int:
        size = next(calls)
        if size == 0:
            raise OSError(errno.ENOSPC, "full")
        return real(fd, raw[:size])

    def refuse(_fd: int, _size: int) -> None:
        raise OSError(errno.EIO, "broken")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        patched.setattr(os, "ftruncate", refuse)
        with pytest.raises(JailError, match="cannot write to the ledger"):
            ledger.append("note", text="x")
    with pytest.raises(JailError, match="half written"):
        ledger.append("end", **END)
    found = verify(str(folder))
    assert (found.state, found.entries) == ("incomplete", 1)


LIMITED = """
import sys; sys.path[:0] = [sys.argv[2], sys.argv[3]]
import resource
from jail.errors import JailError
from jail.ledger.writer import Ledger
from support.ledgers import START
ledger = Ledger.create(sys.argv[1], sys.argv[1].rpartition("/")[2])
ledger.append("start", **START)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    for n in range(100_000):
        ledger.append("note", text=f"{n} " + "x" * 700)
except JailError as error:
    print("\\n".join(error.lines()))
"""


def test_a_real_limit_on_file_size_leaves_a_whole_chain(folder: Path) -> None:
    tests = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(folder), CHECKOUT, tests],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "EFBIG" in done.stdout
    assert "ulimit -f" in done.stdout
    raw = (folder / "ledger.jsonl").read_bytes()
    assert 19_000 < len(raw) <= 20_000
    assert raw.endswith(b"}\n")
    found = verify(str(folder))
    assert (found.state, found.problems) == ("incomplete", ())


FULL_DISK = """
set -e
mount -t tmpfs -o size=64k,mode=0700 none "$1"
mkdir "$1/s"
exec "$2" -c "$3" "$1/s" "$4" "$5"
"""
ON_FULL_DISK = (
    LIMITED.replace("resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n", "")
    + """
from jail.ledger.reader import verify
print(verify(sys.argv[1]).state, verify(sys.argv[1]).problems)
"""
)


@pytest.mark.root
def test_a_disk_that_is_really_full_leaves_a_whole_chain(tmp_path: Path) -> None:
    """Needs mount(2): in a mount namespace of its own, which ends with the child."""
    tests = str(Path(__file__).parents[1])
    shell = ["/bin/sh", "-c", FULL_DISK, "sh", str(tmp_path), sys.executable, ON_FULL_DISK, CHECKOUT, tests]
    done = subprocess.run(
        ["/usr/bin/unshare", "--mount", "--propagation", "private", *shell],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "ENOSPC" in done.stdout
    assert "free space" in done.stdout
    assert done.stdout.endswith("incomplete ()\n")


KILLED = """
import sys; sys.path[:0] = [sys.argv[2], sys.argv[3]]
from jail.ledger import place
from jail.ledger.writer import Ledger
from support.ledgers import START
session = place.new_session(sys.argv[1])
ledger = Ledger.create(session.folder, session.id)
ledger.append("start", **START)
print(session.folder, flush=True)
while True:
    ledger.append("note", text="x" * 50_000)
"""


@pytest.mark.parametrize("wait", [0.0, 0.001, 0.004, 0.009, 0.02])
def test_kill_9_amid_appends_leaves_all_whole_entries_and_an_incomplete_ledger(
    tmp_path: Path, wait: float
) -> None:
    state, tests = state_in(tmp_path), str(Path(__file__).parents[1])
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, state, CHECKOUT, tests], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    folder = Path(child.stdout.readline().strip())
    assert verify(str(folder)).running
    time.sleep(wait)
    child.kill()
    assert child.wait() == -signal.SIGKILL
    child.stdout.close()
    found = verify(str(folder))
    assert found.problems == ()
    assert (found.state, found.running, found.end) == ("incomplete", False, None)
    assert found.entries == (folder / "ledger.jsonl").read_bytes().count(b"\n")


@pytest.mark.parametrize("deed", ["appended", "cut", "removed", "replaced", "linked"])
def test_a_ledger_that_somebody_touches_is_not_written_on(folder: Path, ledger: Ledger, deed: str) -> None:
    started(ledger)
    file = folder / "ledger.jsonl"
    if deed == "appended":
        with file.open("ab") as out:
            out.write(b"x")
    elif deed == "cut":
        os.truncate(file, 10)
    elif deed == "linked":
        os.link(file, folder / "second")
    else:
        file.unlink()
    if deed == "replaced":
        file.write_bytes(b"")
    before = file.read_bytes() if file.exists() else None
    with pytest.raises(JailError, match="changed by somebody else"):
        ledger.append("note", text="x")
    assert (file.read_bytes() if file.exists() else None) == before


def test_a_full_ledger_takes_its_last_words_and_no_others(
    folder: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LEDGER_LIMIT", writer.RESERVE + 4000)
    started(ledger)
    fields = {"path": "x", "digest_before": "a", "digest_after": "b", "window_s": 0.1}
    while (folder / "ledger.jsonl").stat().st_size < 3500:
        ledger.append("lost", **fields)
    with pytest.raises(JailError, match="full") as caught:
        ledger.append("lost", **{**fields, "path": "x" * 600})
    assert "end this session" in caught.value.hint
    ledger.append("limit", which="ledger")
    ledger.append("end", **END)
    found = verify(str(folder))
    assert found.state == "intact"
    assert (folder / "ledger.jsonl").stat().st_size < writer.LEDGER_LIMIT


def test_a_session_whose_index_cannot_be_written_does_not_start(folder: Path, ledger: Ledger) -> None:
    (folder.parent / heads.INDEX).symlink_to("elsewhere")
    with pytest.raises(JailError, match="index of sessions"):
        ledger.append("start", **START)
    assert not (folder.parent / "elsewhere").exists()


def test_many_entries_cost_constant_memory(folder: Path, ledger: Ledger) -> None:
    started(ledger)
    ledger.append("note", text="warm")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(2000):
        ledger.append("note", text="x" * 10_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4 << 10
    assert (folder / "ledger.jsonl").stat().st_size > 20_000_000


def test_the_writer_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import typing; before = set(sys.modules)\n"
        "import jail.ledger.writer, jail.ledger.place; print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, CHECKOUT], capture_output=True, text=True, check=True
    )
    surplus = {name for name in done.stdout.split() if not name.startswith("jail")}
    assert surplus <= {"_json", "_sha256", "_sha2", "errno", "fcntl", "time"}


def test_sessions_of_the_place_and_of_the_writer_fit(tmp_path: Path) -> None:
    folder, _ = write(state_in(tmp_path))
    assert place.listing(state_in(tmp_path)) == [folder.name]
    assert verify(str(folder)).state == "intact"
