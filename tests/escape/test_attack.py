"""`jail doctor --attack`: all is held behind the real walls, and a wall that is taken out is noticed (see support.breaches)."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jail.launch.attacks.table import ATTACKS
from support.breaches import BREACHES
from support.confined import SOURCE, UNPRIVILEGED, workspace
from support.installed import Installed
from support.jails import Jail, make_jail

TESTS = Path(__file__).resolve().parents[1]
DRIVER = "import sys; sys.path[:0] = sys.argv[1:3]; from support.breaches import main; sys.exit(main(sys.argv[3], sys.argv[4:]))"


class Breach(NamedTuple):
    """What is taken out, and the attacks that are made then and must be said not to be held, `; ` between them."""

    wall: str
    attacks: str

    def __str__(self) -> str:
        return self.wall


ROWS = (
    Breach(
        "nothing",
        "secret at home; limits; processes; survivor; signals; descriptors; /proc/1; into process 1; devices",
    ),
    Breach(
        "deny filter",
        "new mount calls; namespaces; clone3, openat2; keyrings; io_uring, userfaultfd; other processes; personality; terminal; "
        "address families; socket protocols; lasting bits; into the kernel",
    ),
    Breach("guard", "i386 calls"),
    Breach("Landlock", "device nodes"),
    Breach("no_new_privs", "setuid programs"),
    Breach("capabilities", "capabilities"),
    Breach("network namespace", "host's loopback; abstract sockets"),
    Breach("process namespace", "processes; signals; survivor"),
    Breach("ipc namespace", "shared memory"),
    Breach("kernel quotas", "limits"),
    Breach("sealed root", "root folder"),
    Breach("read-only trees", "system folders"),
    Breach("allow-list root", "secret at home; home folder; unix sockets; jail's own files; services"),
    Breach("protected mounts", "git hooks; git config; git settings; memory and settings; kernel settings"),
    Breach("masks of /proc", "masked files"),
    Breach("private /dev", "devices"),
    Breach("environment's allow-list", "canary variable"),
    Breach("relayed streams", "files as streams"),
    Breach("closed descriptors", "descriptors"),
    Breach("limits", "limits"),
    Breach("closed process 1", "/proc/1; into process 1"),
    Breach("sweep", "absent names"),
)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with workspace() as found:
        home = found / "home"
        home.mkdir()
        os.chown(home, found.stat().st_uid, found.stat().st_gid)
        yield found


def attacked(folder: Path, breach: str, names: list[str]) -> dict[str, Any]:
    """The report of `names` with one wall taken out, as an unprivileged uid."""
    identity = {"user": UNPRIVILEGED, "group": UNPRIVILEGED, "extra_groups": []} if os.geteuid() == 0 else {}
    done = subprocess.run(
        [sys.executable, "-I", "-c", DRIVER, str(SOURCE), str(TESTS), breach, *names],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder / "home"), "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **identity,  # type: ignore[call-overload]
    )
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == found["exit"], done.stderr
    return found


def states(report: dict[str, Any], names: list[str]) -> dict[str, str]:
    return {
        row["name"]: f"{row['state']}: {row['found']}" for row in report["attacks"] if row["name"] in names
    }


def split(text: str) -> list[str]:
    return [name for name in text.split("; ") if name]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_wall_that_is_taken_out_is_not_held(folder: Path, row: Breach) -> None:
    names = split(row.attacks)
    report = attacked(folder, row.wall, names)
    found = states(report, names)
    wanted = "held" if row.wall == "nothing" else "NOT HELD"
    assert set(found) == set(names)
    assert {name: text for name, text in found.items() if not text.startswith(f"{wanted}: ")} == {}
    assert report["exit"] == (0 if row.wall == "nothing" else 1)
    assert report["left"] == []


def test_every_breach_has_a_row_and_every_name_is_in_the_table() -> None:
    assert {row.wall for row in ROWS} == set(BREACHES)
    assert {name for row in ROWS for name in split(row.attacks)} <= {attack.name for attack in ATTACKS}


def living(jail: Jail) -> list[int]:
    """Processes of the home folder of this jail, inside or outside."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if f"HOME={jail.home}\0".encode() in Path(f"/proc/{name}/environ").read_bytes():
                found.append(int(name))
    return found


def _all_is_held(jail: Jail) -> None:
    done = jail.call("doctor", "--attack", "--json")
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert [row for row in report["attacks"] if row["state"] != "held"] == []
    assert (done.returncode, report["exit"], report["policy"]) == (0, 0, "overnight")
    assert {row["name"] for row in report["attacks"]} >= {attack.name for attack in ATTACKS}
    assert len({row["name"] for row in report["attacks"]}) == len(report["attacks"]) > 40
    assert [*jail.workspace.iterdir()] == []
    assert [*jail.home.glob(".jail-attack-*")] == []
    assert jail.sessions() == []
    assert living(jail) == []


def test_all_is_held_on_this_machine(jail: Jail) -> None:
    _all_is_held(jail)


@pytest.mark.root
def test_all_is_held_when_root_starts_it(jail: Jail) -> None:
    _all_is_held(jail)


@pytest.mark.root
def test_all_is_held_when_root_starts_it_in_the_folder_and_the_home_of_another(installed: Installed) -> None:
    with workspace() as found:
        jail = make_jail(installed, found)
        for folder in (jail.workspace, jail.home):
            os.chown(folder, UNPRIVILEGED, UNPRIVILEGED)
        _all_is_held(jail)


def test_the_text_begins_with_the_answer_and_has_no_colour_outside_a_terminal(jail: Jail) -> None:
    done = jail.call("doctor", "--attack")
    assert done.returncode == 0, done.stdout
    first, second, third, *rest = done.stdout.splitlines()
    assert first.startswith("Held: ")
    assert first.endswith(" attacks under the policy overnight.")
    assert (second, third) == ("", "controls: what must work")
    assert "\x1b" not in done.stdout
    assert {line.split()[0] for line in rest if line.startswith("  ")} == {"works", "held"}


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name
)
def test_nothing_is_left_when_it_is_interrupted(jail: Jail, number: signal.Signals) -> None:
    command = [str(jail.installed.command), "doctor", "--attack"]
    done = subprocess.Popen(
        command,
        cwd=jail.workspace,
        env=dict(jail.environment),
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    end = time.monotonic() + 60
    while not (canaries := [*jail.home.glob(".jail-attack-*")]) and time.monotonic() < end:
        time.sleep(0.005)
    assert canaries, "the canary folder was never there"
    assert done.pid in living(jail)
    os.killpg(done.pid, number)
    done.communicate(timeout=60)
    assert done.returncode in (128 + number, -number)
    assert [*jail.home.glob(".jail-attack-*")] == []
    assert living(jail) == []


def test_a_policy_of_ones_own_is_attacked(jail: Jail) -> None:
    policy = jail.home / "mine.toml"
    policy.write_text(
        'name = "mine"\n[files]\nsystem = ["/usr", "/bin", "/lib", "/lib64"]\nwrite = ["out"]\n'
        'read = ["~/shown"]\n[accept]\nlosses = ["limits-memory", "landlock-rights"]\n'
    )
    (jail.home / "shown").mkdir()
    done = jail.call("doctor", "--attack", "--json", "--policy", policy)
    report = json.loads(done.stdout)
    assert (report["policy"], report["not_held"], done.returncode) == ("mine", 0, 0)


def test_a_projects_own_file_is_part_of_the_policy_and_what_it_names_has_a_stand_in(jail: Jail) -> None:
    for name in ("schemas", "docs/deep", "private"):
        (jail.workspace / name).mkdir(parents=True)
    project = jail.workspace / ".jail.toml"
    names = ["schemas", "docs/deep", ".git/config", "RESEARCH.md"]
    project.write_text(f'[files]\nread = {names}\nhide = ["private"]\n')
    done = jail.call("doctor", "--attack", "--json")
    assert (done.stderr, done.returncode) == ("", 0)
    assert json.loads(done.stdout)["not_held"] == 0
    # The control: the file is read, and its faults are told of it, not of a copy.
    project.write_text('[files]\nread = ["~/more"]\n')
    done = jail.call("doctor", "--attack")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"the project file {project} has a fault" in done.stderr


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ('name = "wrong"\n[files]\nsistem = []\n', 2, "sistem"),
        ('name = "strict"\n[files]\nsystem = ["/usr"]\n', 78, "limits-memory"),
    ],
    ids=["a fault", "a loss that is not accepted"],
)
def test_a_run_that_is_refused_is_no_answer(jail: Jail, text: str, code: int, said: str) -> None:
    policy = jail.home / "mine.toml"
    policy.write_text(text)
    done = jail.call("doctor", "--attack", "--policy", policy)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
