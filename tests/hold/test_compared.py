"""What is equal to what, of one path at two times."""

import os
from pathlib import Path

import pytest

from jail.hold import base, compared
from jail.hold.change import ABSENT, ADDED, DELETED, MODE, MODIFIED, TIME, TYPE, UNKNOWN, State

FILE = State("file", 0o644, 3, 1000, "d1")
LINK = State("symlink", 0o777, 0, 1000, "t1")
FOLDER = State("folder", 0o755, 0, 1000)

DIFFERENCES = {
    "nothing": (FILE, FILE, ""),
    "added": (ABSENT, FILE, ADDED),
    "deleted": (FILE, ABSENT, DELETED),
    "another kind": (FILE, LINK, TYPE),
    "a content": (FILE, FILE._replace(digest="d2", mode=0o600), MODIFIED),
    "a size under the same digest": (FILE, FILE._replace(size=4), MODIFIED),
    "a content that was not read": (FILE._replace(digest=""), FILE._replace(digest=""), MODIFIED),
    "bits": (FILE, FILE._replace(mode=0o600, mtime_ns=2), MODE),
    "a time": (FILE, FILE._replace(mtime_ns=2), TIME),
    "a target": (LINK, LINK._replace(digest="t2"), MODIFIED),
    "bits and time of a link": (LINK, LINK._replace(mode=0o700, mtime_ns=2), ""),
    "bits of a folder": (FOLDER, FOLDER._replace(mode=0o700), MODE),
    "the time of a folder": (FOLDER, FOLDER._replace(mtime_ns=2), ""),
    "nothing of something special": (State("special", 0o644), State("special", 0o644), ""),
}


@pytest.mark.parametrize("what", DIFFERENCES)
def test_what_happened_between_two_states_is_one_word(what: str) -> None:
    old, new, word = DIFFERENCES[what]
    assert compared.differs(old, new) == word


DONE = {
    "it is the same": (FILE, FILE, True),
    "it has another time": (FILE, FILE._replace(mtime_ns=2), True),
    "it has another content": (FILE, FILE._replace(digest="d2"), False),
    "it has other bits": (FILE, FILE._replace(mode=0o600), False),
    "it has the bits that would be given": (FILE._replace(mode=0o6666), FILE._replace(mode=0o664), True),
    "it has a bit that would stay": (FOLDER._replace(mode=0o6777), FOLDER._replace(mode=0o2775), True),
    "it lacks a bit that would be given": (FILE._replace(mode=0o755), FILE, False),
    "it is gone, as it should": (ABSENT, ABSENT, True),
    "it is there still": (ABSENT, FILE, False),
}


@pytest.mark.parametrize("how", DONE)
def test_it_is_done_where_the_host_has_what_would_be_applied(how: str) -> None:
    new, now, done = DONE[how]
    assert compared.is_done(new, now) == done


def test_a_file_of_the_host_is_the_base_while_nobody_wrote_or_replaced_it(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one")
    found = path.lstat()
    entry, now = base.entry_of(found), State("file", 0o644, 3, found.st_mtime_ns)
    now = now._replace(mode=entry.mode)
    assert compared.is_base(entry, found, now)
    assert not compared.is_base(entry, found, now._replace(mode=0))
    assert compared.has_content(entry, found, now._replace(mode=0)), "bits are no content"
    assert not compared.has_content(entry, found, now._replace(mtime_ns=0))
    assert not compared.has_content(entry, found, now._replace(size=4))
    assert not compared.is_base(entry, found, ABSENT)
    (tmp_path / "g").write_text("one")
    os.utime(tmp_path / "g", ns=(found.st_mtime_ns, found.st_mtime_ns))
    assert not compared.is_base(entry, (tmp_path / "g").lstat(), now), "another inode"


def test_a_folder_is_the_base_by_its_bits_and_a_link_by_its_target(tmp_path: Path) -> None:
    found = tmp_path.lstat()
    folder = base.entry_of(found)
    assert compared.is_base(folder, found, State("folder", folder.mode, 0, 1))
    assert not compared.is_base(folder, found, State("folder", 0o1, 0, 1))
    link = base.entry_of(found, "")._replace(kind="symlink", digest="t1")
    assert compared.is_base(link, found, LINK._replace(mtime_ns=1))
    assert not compared.is_base(link, found, LINK._replace(digest="t2"))
    assert compared.is_base(base.ABSENT, None, ABSENT)
    assert not compared.is_base(base.UNKNOWN, found, FOLDER)


def test_an_entry_of_the_base_tells_of_a_state_or_of_none() -> None:
    entry = base.Entry("file", 0o644, 3, 1000)
    assert compared.as_state(entry, "d1") == FILE
    assert compared.as_state(entry._replace(digest="t1"), "d1").digest == "t1"
    assert compared.as_state(base.UNKNOWN, "d1") == UNKNOWN
    assert compared.as_state(base.ABSENT, "") == ABSENT
