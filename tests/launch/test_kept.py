"""The kept end of the output: bounded, always one piece, and nothing that a run could fail of."""

import os
import resource
import subprocess
import time
from pathlib import Path

from jail.launch.kept import CHUNK, HALF, NAME, OLD, WINDOW, Kept
from support.answers import new_jail
from support.installed import Installed
from support.jails import PYTHON


def kept_in(folder: Path) -> tuple[Kept, list[str]]:
    notes: list[str] = []
    return Kept(str(folder), notes.append), notes


def content(folder: Path) -> bytes:
    return b"".join((folder / name).read_bytes() for name in (OLD, NAME) if (folder / name).exists())


def numbered(start: int, count: int) -> bytes:
    return b"".join([b"%015d\n" % number for number in range(start, start + count)])


def test_what_is_shown_is_written_in_its_order(tmp_path: Path) -> None:
    kept, notes = kept_in(tmp_path)
    pieces = [b"x" * 10, b"y" * 5000, b"z", b"", b"w" * CHUNK]
    for piece in pieces:
        kept.take(memoryview(piece))
    assert not (tmp_path / NAME).exists(), "it is written later"
    kept.close()
    assert content(tmp_path) == b"".join(pieces)
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600
    assert notes == []


def test_memory_that_is_used_again_is_copied(tmp_path: Path) -> None:
    kept, _ = kept_in(tmp_path)
    buffer = bytearray(b"a" * 8192)
    kept.take(memoryview(buffer))
    buffer[:] = b"b" * 8192
    kept.close()
    assert content(tmp_path) == b"a" * 8192


def test_it_is_due_after_a_moment_and_only_when_something_waits(tmp_path: Path) -> None:
    kept, _ = kept_in(tmp_path)
    assert kept.timeout is None
    kept.take(memoryview(b"x"))
    assert kept.timeout is not None
    while kept.timeout:
        time.sleep(kept.timeout)
    assert kept.interests() == []
    assert content(tmp_path) == b"x"
    assert kept.timeout is None
    kept.close()


def test_the_end_is_kept_and_both_files_stay_bounded(tmp_path: Path) -> None:
    kept, _ = kept_in(tmp_path)
    lines = WINDOW // 16
    for part in range(12):
        kept.take(memoryview(numbered(part * lines, lines)))
        kept.flush()
        assert (tmp_path / NAME).stat().st_size <= HALF
        if part >= 4:
            found = content(tmp_path)
            assert HALF <= len(found) <= 2 * HALF
            last = (part + 1) * lines
            assert found == numbered(last - len(found) // 16, len(found) // 16)
    kept.close()


def test_of_a_flood_the_last_piece_is_kept_without_a_gap(tmp_path: Path) -> None:
    kept, _ = kept_in(tmp_path)
    kept.take(memoryview(b"long ago\n"))
    kept.flush()
    count = 400
    for part in range(count):
        kept.take(memoryview(numbered(part * 4096, 4096)))
    kept.close()
    found = content(tmp_path)
    assert WINDOW <= len(found) <= 2 * WINDOW + CHUNK
    assert found == numbered(count * 4096 - len(found) // 16, len(found) // 16)
    assert not (tmp_path / OLD).exists()


def test_a_disk_that_is_full_is_noted_once(tmp_path: Path) -> None:
    kept, notes = kept_in(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        for _ in range(3):
            kept.take(memoryview(b"x" * 5000))
            kept.flush()
        kept.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(notes) == 1
    assert "no longer kept" in notes[0]


def test_no_link_in_its_place_is_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    folder = tmp_path / "session"
    folder.mkdir()
    (folder / NAME).symlink_to(target)
    kept, _ = kept_in(folder)
    kept.take(memoryview(b"x"))
    kept.close()
    assert target.read_text() == "mine"


def test_a_session_keeps_what_its_command_printed(installed: Installed, tmp_path: Path) -> None:
    jail = new_jail(installed, tmp_path / "kept")
    done = jail.run("sh", "-c", "exec 2>&1; echo out; echo err >&2; printf end")
    assert done.returncode == 0
    (folder,) = jail.sessions()
    assert (folder / NAME).read_text() == "out\nerr\nend"
    assert jail.run("true").returncode == 0
    (other,) = set(jail.sessions()) - {folder}
    assert not (other / NAME).exists()


def test_a_run_outlives_a_disk_that_takes_no_more(installed: Installed, tmp_path: Path) -> None:
    jail = new_jail(installed, tmp_path / "full")

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))

    program = "import time\nfor _ in range(6): print('x' * 100_000, flush=True); time.sleep(0.3)"
    process = jail.popen(
        PYTHON, "-c", program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=bounded
    )
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, len(out)) == (0, 600_006), errors
    notes = [entry["fields"]["text"] for entry in jail.ledger() if entry["kind"] == "note"]
    assert notes == [f"what the command prints is no longer kept: {os.strerror(27)}"]
    assert jail.call("verify", "last").returncode == 0
