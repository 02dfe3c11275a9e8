"""CASES.md A16 and held trees in a workspace that is written, or rules within a held one: each path is what it
should be, for whoever works there.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from support.attempts import DONE, PRELUDE, lay, state_of
from support.jails import PYTHON, Jail
from support.policies import undelivered
from support.running import Running, until

SETTLE: Final = 60.0
"""Seconds until a held tree must be back; it takes milliseconds."""


LOOP: Final = r"""
import time
print("ready", flush=True)
made = 0
while not os.path.exists("stop"):
    try:
        keep(f".venv/bin/tool-{made}", "evil")
        made += 1
    except OSError:
        pass
    time.sleep(0.001)
print(made)
"""


@pytest.fixture
def activated(jail: Jail) -> Jail:
    """A jail whose PATH leads into a virtual environment of the workspace."""
    lay(jail.workspace, {".venv/pyvenv.cfg": "", ".venv/bin/tool": "#!/bin/sh\n"})
    path = f"{jail.workspace}/.venv/bin:/usr/bin:/bin"
    return jail._replace(environment={**jail.environment, "PATH": path})


def again(folder: Path) -> Iterator[Callable[[], None]]:
    """What a person does with a virtual environment while a command runs."""
    yield lambda: shutil.rmtree(folder)
    yield lambda: lay(folder, {"pyvenv.cfg": "", "bin/mine": "#!/bin/sh\n"})


def test_a16_a_tree_that_the_host_makes_again_is_held_again(activated: Jail) -> None:
    venv = activated.workspace / ".venv"

    def said(kind: str) -> list[Any]:
        return [entry for entry in activated.ledger() if entry["kind"] == kind]

    options = ["--policy", undelivered(activated.home)]
    with Running(activated, PYTHON, "-I", "-c", PRELUDE + LOOP, options=options) as running:
        running.ready()
        upper = activated.sessions()[-1] / "held/t0/upper"
        assert until((upper / "bin/tool-0").exists, SETTLE)
        away, back = again(venv)
        away()
        assert until(lambda: said("lost"), SETTLE)
        assert not said("restored")
        back()
        assert until(lambda: said("restored"), SETTLE)
        before = sorted(path.name for path in (venv / "bin").iterdir())
        lay(venv, {"bin/later": ""})
        (activated.workspace / "stop").touch()
        assert running.wait() == 0
    assert int(running.output) > 0
    assert "held again; look at what was made there" in running.errors
    assert sorted(path.name for path in (venv / "bin").iterdir()) == sorted([*before, "later"])
    assert said("restored")[-1]["fields"]["path"] == str(venv)


def test_a_store_of_hard_links_is_held_so_that_other_projects_keep_what_they_share(jail: Jail) -> None:
    store = jail.home / "store"
    lay(store, {"index.js": "shared\n"})
    lay(jail.workspace, {"node_modules/a/package.json": "{}\n"})
    os.link(store / "index.js", jail.workspace / "node_modules/a/index.js")
    before = state_of(store, jail.workspace)
    program = """
attempt("write", lambda: keep("node_modules/a/index.js", "evil", os.O_WRONLY))
attempt("chmod", lambda: os.chmod("node_modules/a/index.js", 0o777))
attempt("install", lambda: (os.mkdir("node_modules/b"), keep("node_modules/b/index.js", "new")))
say()
"""
    assert set(jail.inside(PRELUDE + program).values()) == {DONE}
    assert state_of(store, jail.workspace) == before
    assert (jail.sessions()[-1] / "held/t0/upper/b/index.js").read_text() == "new"
    assert set(jail.outside(PRELUDE + program).values()) == {DONE}
    assert (store / "index.js").read_text().startswith("evil")


def test_a_rule_for_writing_in_a_held_workspace_gives_the_real_thing(jail: Jail) -> None:
    lay(jail.workspace, {"out/deep/file": "old\n", "docs/file": "old\n", "kept": "old\n"})
    program = """
attempt("real", lambda: keep("out/deep/file", "new", os.O_WRONLY | os.O_TRUNC))
attempt("held", lambda: keep("kept", "new", os.O_WRONLY | os.O_TRUNC))
attempt("read-only", lambda: keep("docs/file", "new", os.O_WRONLY))
attempt("move", lambda: os.rename("out", "out2"))
say()
"""
    options = ["--hold", "--write", "out/deep", "--read", "docs"]
    found = jail.inside(PRELUDE + program, options=options)
    assert found == {"real": DONE, "held": DONE, "read-only": "EROFS", "move": "EBUSY"}
    assert (jail.workspace / "out/deep/file").read_text() == "new"
    assert [(jail.workspace / name).read_text() for name in ("kept", "docs/file")] == ["old\n"] * 2


def test_what_jail_exec_starts_sees_the_same_held_tree(activated: Jail) -> None:
    program = "import time; keep('.venv/first', 'x'); print('ready', flush=True)\nwhile not os.path.exists('.venv/second'): time.sleep(0.01)"
    options = ["--policy", undelivered(activated.home)]
    with Running(activated, PYTHON, "-I", "-c", PRELUDE + program, options=options) as running:
        running.ready()
        done = activated.call("exec", "-", "--", "sh", "-c", "cat .venv/first && touch .venv/second")
        assert done.stdout == "x", done.stderr
        assert running.wait() == 0
    assert not (activated.workspace / ".venv/first").exists()
    assert not (activated.workspace / ".venv/second").exists()


def test_what_is_held_counts_against_the_limit(jail: Jail) -> None:
    policy = jail.home / "small.toml"
    policy.write_text('name = "small"\nbase = "overnight"\n[limits]\nheld = "1MiB"\n')
    fill = "import time; keep('a', 'x' * (2 << 20)); os.mkdir('b'); os.chmod('.', 0o300); time.sleep(60)"
    done = jail.run(PYTHON, "-I", "-c", PRELUDE + fill, options=["--hold", "--policy", policy])
    assert done.returncode == 137
    assert "more than 1 MiB" in done.stderr
    (limit,) = [entry["fields"]["which"] for entry in jail.ledger() if entry["kind"] == "limit"]
    assert limit == "held"
