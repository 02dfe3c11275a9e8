"""What joins a session is confined as its first command is, field by field (CASES.md E11, CVE-2022-31214)."""

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.answers import new_jail
from support.installed import Installed
from support.jails import PYTHON, Jail
from support.joining import Session, session
from support.posture import PROGRAM
from support.running import Running

FIRST = f"{PROGRAM}\nprint('ready', flush=True)\nsys.stdin.read()"
MEANT_TO_DIFFER: dict[str, tuple[object, object]] = {}
"""Fields with another value on purpose, and both values: there is none."""


class Both(NamedTuple):
    """The posture of the first command, of one that joined it, and of a process without walls."""

    first: dict[str, Any]
    joined: dict[str, Any]
    outside: dict[str, Any]


def postures(jail: Jail) -> Both:
    with Running(jail, PYTHON, "-I", "-c", FIRST, stdin=subprocess.PIPE) as running:
        first = json.loads(running.line())
        running.ready()
        done = Session(jail, running).exec(PYTHON, "-I", "-c", PROGRAM, stdin="")
        assert done.returncode == 0, done.stdout + done.stderr
    return Both(first, json.loads(done.stdout), jail.outside(PROGRAM))


@pytest.fixture(scope="module")
def both(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Both:
    return postures(new_jail(installed, tmp_path_factory.mktemp("posture")))


CONTROLS = (
    *("status NoNewPrivs", "status Seccomp", "status Seccomp_filters"),
    *("namespace mnt", "namespace pid", "namespace user", "namespace net", "namespace ipc", "namespace uts"),
    *("mountinfo", "uid_map", "oom_score_adj", "limits", "root", "parent", "unshare user"),
)
"""Fields that are not what they are outside, so that two equal ones mean walls."""


def test_e11_every_field_of_the_joined_process_is_that_of_the_first(both: Both) -> None:
    assert both.joined.keys() == both.first.keys()
    differing = {name: (both.first[name], both.joined[name]) for name in both.first}
    assert {name: pair for name, pair in differing.items() if pair[0] != pair[1]} == MEANT_TO_DIFFER


@pytest.mark.parametrize("field", CONTROLS)
def test_control_a_process_without_walls_differs(both: Both, field: str) -> None:
    assert both.outside[field] != both.first[field]


def test_cve_2022_31214_it_has_no_capability_no_new_privileges_and_both_filters(both: Both) -> None:
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert both.joined[f"status {name}"] == ["0000000000000000"]
    assert both.joined["status NoNewPrivs"] == ["1"]
    assert both.joined["status Seccomp"] == ["2"]
    assert both.joined["status Seccomp_filters"] == ["2"]
    assert both.joined["look into process 1"] == "EACCES"
    assert both.joined["trace process 1"] == "EPERM"


@pytest.mark.root
def test_e11_started_by_root_every_field_is_that_of_the_first_too(
    installed: Installed, tmp_path: Path
) -> None:
    found = postures(new_jail(installed, tmp_path / "root"))
    assert found.joined == found.first
    assert found.joined["ids"][0][0] not in (0, *found.outside["ids"][0])


def test_the_ledger_has_the_command_before_it_ran_and_how_it_left(
    installed: Installed, tmp_path: Path
) -> None:
    jail = new_jail(installed, tmp_path / "recorded")
    with session(jail) as found:
        assert found.exec("sh", "-c", "echo $$; exit 7").returncode == 7
        (joined,) = found.entries("joined")
        assert joined == {
            "join": joined["join"],
            "command": ["sh", "-c", "echo $$; exit 7"],
            "pid": joined["pid"],
            "probes_held": len(found.entries("probes")[0]["results"]),
            "terminal": False,
        }
        (left,) = found.entries("left")
        assert left == {"join": joined["join"], "exit": 7, "signal": 0, "reason": "exited"}
        assert found.running.wait() == 0
    assert jail.call("verify", found.id).stdout.startswith("intact")


INSIDE_LOOKS = r"""
import errno, json, os, sys, time
end = time.monotonic() + float(sys.argv[1])
met = {}
while time.monotonic() < end:
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in (1, os.getpid()):
            for place in ("mem", "environ", "fd", "maps"):
                try:
                    (os.listdir if place == "fd" else open)(f"/proc/{name}/{place}")
                    word = "ok"
                except OSError as error:
                    word = errno.errorcode[error.errno]
                try:
                    if not open(f"/proc/{name}/cmdline").read().startswith("jail-init"):
                        break  # executed by now, or ended: what was met says nothing
                except OSError:
                    break
                met.setdefault(place, []).append(word)
print(json.dumps({place: sorted(set(words)) for place, words in met.items()}))
"""
"""What runs inside and lies in wait for what joins, to trace it before its exec."""


def test_what_runs_inside_cannot_look_into_a_process_that_joins_until_its_exec(
    installed: Installed, tmp_path: Path
) -> None:
    jail = new_jail(installed, tmp_path / "waiting")
    program = f"print('ready', flush=True)\n{INSIDE_LOOKS}"
    with Running(jail, PYTHON, "-I", "-c", program, "3") as running:
        running.ready()
        found = Session(jail, running)
        joined = [found.popen("sleep", "0.05") for _ in range(2)]
        for each in joined:
            each.communicate(timeout=60)
        met = json.loads(running.line())
        running.wait()
    for place in ("mem", "fd"):
        assert "ok" not in met.get(place, []), met
    assert "EACCES" in met["fd"], "no process was met before its exec"
