"""Ledgers to read: made by the real writer, in a state folder of the test's own."""

import os
from pathlib import Path
from typing import Any

from jail.ledger import place
from jail.ledger.writer import Ledger

START: dict[str, Any] = {
    "plan": "mount / read-only\nhide ~/.ssh",
    "policy": "overnight",
    "policy_digest": "9c" * 32,
    "policy_sources": [["policies/overnight.toml", "ab" * 32]],
    "versions": {"jail": "0.1.0", "kernel": "6.1"},
    "losses": ["landlock"],
    "command": ["pytest", "-q", "a b"],
    "workspace": "/home/someone/work",
    "pid": 4711,
}
END: dict[str, Any] = {
    "exit": 0,
    "reason": "exited",
    "signal": None,
    "duration_s": 3.25,
    "cpu_s": 1.5,
    "peak_bytes": 1 << 20,
}

REVIEWED: dict[str, Any] = {
    "path": "/home/someone/work/a",
    "what": "modified",
    "tier": "warned",
    "reason": "a Makefile",
    "digest_before": "ab" * 32,
    "digest_after": "cd" * 32,
}


def state_in(folder: Path) -> str:
    """A state folder as jail would have it in `folder`."""
    return str(folder / "state" / "jail")


def write(
    state: str, *, notes: int = 2, end: bool = True, keep_lock: bool = False, **changes: object
) -> tuple[Path, int]:
    """A session with `notes` notes between start and end: its folder, and its lock (-1: given back)."""
    session = place.new_session(state)
    ledger = Ledger.create(session.folder, session.id)
    ledger.append("start", **{**START, **{k: v for k, v in changes.items() if k in START}})
    for number in range(notes):
        ledger.append("note", text=f"note {number}")
    if end:
        ledger.append("end", **{**END, **{k: v for k, v in changes.items() if k in END}})
    ledger.close()
    if keep_lock:
        return Path(session.folder), session.lock_fd
    os.close(session.lock_fd)
    return Path(session.folder), -1
