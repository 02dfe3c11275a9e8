"""CASES.md A31: jail's own code, state, cache and configuration are not in a jail, whatever is given."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from support.attempts import DONE, GONE, PRELUDE, REFUSED, lay, offences, state_of, warm_jail
from support.installed import Installed
from support.jails import PYTHON, Jail

EXIT_CANNOT_ISOLATE = 78


@pytest.fixture
def warm(installed: Installed, tmp_path: Path) -> Jail:
    """A jail of this test alone."""
    return warm_jail(installed, tmp_path)


# ---- jail's own files (A31) ----


def test_a31_the_installation_state_cache_and_configuration_are_neither_seen_nor_writable_inside(
    installed: Installed, tmp_path: Path
) -> None:
    jail = warm_jail(installed, tmp_path)
    # A cache of its own: other tests fill the shared one meanwhile.
    jail = jail._replace(environment={**jail.environment, "XDG_CACHE_HOME": str(tmp_path / "cache")})
    lay(jail.home, {".config/jail/mine.toml": "x"})
    ask = "import json, sys, jail; print(json.dumps([*sys.path, sys.executable, sys.prefix, jail.__file__]))"
    told = subprocess.run([installed.python, "-I", "-c", ask], capture_output=True, text=True, check=True)
    own = [path for path in json.loads(told.stdout) if os.path.exists(path)]
    state = [
        jail.home / ".local/state/jail",
        jail.home / ".config/jail",
        Path(jail.environment["XDG_CACHE_HOME"]) / "jail",
    ]
    jail.run("true")
    assert all(path.exists() for path in state)
    program = """
for path in sys.argv[1:]:
    found[f"see {path}"] = outcome(lambda: os.stat(path))
    found[f"write {path}"] = outcome(lambda: keep(path + "/planted" if os.path.isdir(path) else path, "x", os.O_WRONLY | os.O_CREAT))
for path in sys.argv[1:]:
    found[f"make {path}"] = outcome(lambda: os.makedirs(path + "/planted"))
attempt("free", lambda: keep("free", "x"))
say()
"""
    places = [*own, str(installed.root), str(installed.command), *map(str, state)]

    def looked() -> dict[str, object]:
        found = state_of(installed.root / "bin", Path(own[-1]).parent, *state[1:])
        # Beside each private cache jail itself notes when it was last used.
        return {path: what for path, what in found.items() if not path.endswith("/workspace")}

    before = looked()
    found = jail.inside(PRELUDE + program, *places)
    assert looked() == before
    assert found.pop("free") == DONE
    inside_venv = {
        name: met for name, met in found.items() if name == f"see {installed.root}" or ".local/state" in name
    }
    assert len(inside_venv) >= 2
    for path in places:
        if not path.startswith("/usr/"):
            assert found[f"see {path}"] in GONE, path
        else:
            assert found[f"write {path}"] in REFUSED | GONE, path


@pytest.mark.parametrize("verb", ["--read", "--write"])
def test_a31_giving_a_folder_that_holds_the_installation_does_not_give_the_installation(
    verb: str, installed: Installed, tmp_path: Path
) -> None:
    jail = warm_jail(installed, tmp_path)
    beside = installed.root.parent / "beside"
    beside.write_text("beside")
    program = """
root = sys.argv[1]
assert not os.path.isdir(root) or os.listdir(root) == []
for name in ("/bin/jail", "/bin/python", "/pyvenv.cfg"):
    attempt(f"read {name}", lambda: content(root + name))
attempt("beside", lambda: content(sys.argv[2]))
say()
"""
    command = [PYTHON, "-I", "-c", PRELUDE + program, str(installed.root), str(beside)]
    done = jail.run(*command, options=[verb, installed.root.parent])
    if verb == "--write":
        assert done.returncode == EXIT_CANNOT_ISOLATE
        return
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("beside") == DONE
    assert not offences(found, GONE)


@pytest.mark.parametrize("which", ["installation", "state", "configuration", "its parent"])
def test_a31_a_workspace_with_jails_own_files_is_refused(
    which: str, installed: Installed, tmp_path: Path
) -> None:
    jail = warm_jail(installed, tmp_path)
    lay(jail.home, {".config/jail/x": "x", ".local/state/jail/x": "x"})
    folder = {
        "installation": installed.packages,
        "state": jail.home / ".local/state/jail",
        "configuration": jail.home / ".config/jail",
        "its parent": jail.home / ".local",
    }[which]
    done = jail.run("sh", "-c", "echo ran", cwd=folder)
    assert done.returncode == EXIT_CANNOT_ISOLATE
    assert done.stdout == ""
    assert "workspace" in done.stderr
