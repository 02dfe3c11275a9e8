import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jail.errors import JailError
from jail.ledger import chain
from jail.ledger.lines import Line, lines, open_regular, parse

GOOD = chain.line(1, 2.5, "note", {"text": "x"}, "00" * 32)


def changed(**parts: object) -> bytes:
    return json.dumps({**json.loads(GOOD), **parts}).encode()


def without(name: str) -> bytes:
    return json.dumps({key: value for key, value in json.loads(GOOD).items() if key != name}).encode()


HOSTILE = {
    "empty": b"",
    "blank": b" ",
    "not UTF-8": b"\xff\xfe",
    "NUL": b"\0" * 100,
    "UTF-8 past ASCII": GOOD.replace(b'"x"', '"é"'.encode()),
    "half": GOOD[: len(GOOD) // 2],
    "two": GOOD + GOOD,
    "list": b"[]",
    "number": b"1",
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"a":' * 50_000,
    "long number": changed().replace(b'"seq": 1', b'"seq": ' + b"9" * 10_000),
    "NaN": changed().replace(b'"time": 2.5', b'"time": NaN'),
    "Infinity": changed().replace(b'"time": 2.5', b'"time": -Infinity'),
    "time out of range": changed(time=10**400),
    "field missing": without("prev"),
    "field too many": changed(more=1),
    "seq a bool": changed(seq=True),
    "seq a float": changed(seq=1.0),
    "seq a string": changed(seq="1"),
    "fields a list": changed(fields=[]),
    "kind null": changed(kind=None),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_become_a_sentence(name: str) -> None:
    entry, fault = parse(HOSTILE[name])
    assert entry is None
    assert fault


def test_a_good_line_becomes_its_entry() -> None:
    entry, fault = parse(GOOD)
    assert fault == ""
    assert entry == (1, 2.5, "note", "jail", {"text": "x"}, "00" * 32)


@given(
    st.binary(max_size=300)
    | st.integers(0, len(GOOD)).flatmap(lambda n: st.binary().map(lambda b: GOOD[:n] + b))
)
def test_no_bytes_raise(raw: bytes) -> None:
    entry, fault = parse(raw)
    assert (entry is None) == bool(fault)


def expected(raw: bytes, limit: int) -> list[Line]:
    *whole, rest = raw.split(b"\n")
    found = [(part, True) for part in whole] + ([(rest, False)] if rest else [])
    return [Line(n, p if len(p) <= limit else None, e) for n, (p, e) in enumerate(found, 1)]


@given(
    st.lists(st.sampled_from([b"", b"a", b"bbb", b"cccccccc", b"\n"]), max_size=20),
    st.integers(1, 7),
    st.integers(0, 6),
)
def test_lines_are_the_same_however_they_arrive(parts: list[bytes], step: int, limit: int) -> None:
    raw = b"\n".join(parts)
    read_fd, write_fd = os.pipe()
    try:
        os.write(write_fd, raw)
        os.close(write_fd)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("jail.ledger.lines._CHUNK", step)
            assert list(lines(read_fd, limit)) == expected(raw, limit)
    finally:
        os.close(read_fd)


def test_a_line_without_end_is_not_held(tmp_path: Path) -> None:
    import tracemalloc

    file = tmp_path / "long"
    with file.open("wb") as out:
        out.truncate(64 << 20)
    fd = os.open(file, os.O_RDONLY)
    tracemalloc.start()
    try:
        assert list(lines(fd)) == [Line(1, None, ended=False)]
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()
        os.close(fd)


@pytest.mark.parametrize("what", ["nothing", "pipe", "folder", "device", "link", "NUL in the name"])
def test_only_a_regular_file_is_opened_and_nothing_hangs(tmp_path: Path, what: str) -> None:
    path = str(tmp_path / "it")
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        os.mkdir(path)
    elif what == "device":
        path = "/dev/zero"
    elif what == "link":
        (tmp_path / "target").write_bytes(b"")
        os.symlink("target", path)
    elif what == "NUL in the name":
        path = "a\0b"
    with pytest.raises(JailError, match="cannot read the ledger"):
        open_regular(path)


def test_a_link_that_a_person_names_is_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"x")
    (tmp_path / "it").symlink_to("target")
    fd = open_regular(str(tmp_path / "it"), follow=True)
    assert os.read(fd, 9) == b"x"
    os.close(fd)
