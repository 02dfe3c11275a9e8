import json
from pathlib import Path

from jail.hold import recorded
from jail.hold.change import ABSENT, ADDED, RENAMED, Change, State
from jail.hold.store import Manifest
from jail.ledger.review import ReviewLedger
from jail.plan.held import Held
from support.ledgers import state_in, write

FILE = State("file", 0o755, 3, 7, "ab")
THINGS = (Held("t0", "overlay", "/w", "the workspace"), Held("f0", "file", "/w/.git/config", "git"))


def test_an_entry_has_the_path_on_the_host_and_both_states(tmp_path: Path) -> None:
    folder = write(state_in(tmp_path))[0]
    review = ReviewLedger.open(str(folder), folder.name)
    record = recorded.into(review, Manifest(folder.name, "/w", 1, 1, -1, 7, (), THINGS))
    record("applied", Change("t0", "b\udcff", RENAMED, ABSENT, FILE, FILE, source="a"))
    record("refused", Change("f0", "", ADDED, ABSENT, FILE, FILE, conflict="the host has another"))
    review.close()
    found = [json.loads(line)["fields"] for line in (folder / "review.jsonl").read_bytes().splitlines()]
    assert found[0] == {
        "path": "/w/b\udcff",
        "source": "/w/a",
        "what": "renamed",
        "tier": "",
        "reason": "",
        "digest_before": None,
        "kind_before": "absent",
        "mode_before": None,
        "digest_after": "ab",
        "kind_after": "file",
        "mode_after": "0755",
    }
    assert (found[1]["path"], found[1]["reason"]) == ("/w/.git/config", "the host has another")
