"""How a script begins, and which program would run it."""

import os
from pathlib import Path

import pytest

from jail.launch import firstline

LINES = {
    "a path": (b"#!/usr/bin/python3\n", "/usr/bin/python3"),
    "an argument": (b"#! /usr/bin/env python3\n", "/usr/bin/env"),
    "the long form of pip": (b"#!/bin/sh\n'''exec' \"/a b/python\" \"$0\" \"$@\"\n' '''\n", "/a b/python"),
    "the long form without quotes": (b"#!/bin/sh\n'''exec' /long/python \"$0\" \"$@\"\n", "/long/python"),
    "a plain shell script": (b"#!/bin/sh\nexec /x\n", "/bin/sh"),
    "a relative interpreter": (b"#!python\n", ""),
    "nothing behind it": (b"#!", ""),
    "no script": (b"\x7fELF", ""),
    "an empty file": (b"", ""),
    "bytes that are no text": (b"#!/\xff/x\n", os.fsdecode(b"/\xff/x")),
}


@pytest.mark.parametrize("name", LINES)
def test_the_interpreter_is_what_the_kernel_would_start(name: str) -> None:
    start, interpreter = LINES[name]
    assert firstline.interpreter(start) == interpreter


def test_the_beginning_is_read_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "script").write_bytes(b"#!/bin/sh\n" + b"x" * 5000)
    assert len(firstline.read(f"{tmp_path}/script")) == firstline.FIRST_LINE


def test_nothing_is_read_of_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/passwd")
    for name in ("pipe", "link", "none", "."):
        assert firstline.read(f"{tmp_path}/{name}") == b""
