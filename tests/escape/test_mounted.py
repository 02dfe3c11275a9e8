"""CASES.md A1, A2, A8, A10, A23 and F1 as root: what the host has mounted, mounts later, or put in the place of a device.

Rule: each test has a mount namespace of its own (unshare -m) for what it mounts, so that nothing is left; jail is started by root in it.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.attempts import DONE, GONE, PRELUDE, lay, offences, warm_jail
from support.installed import Installed
from support.jails import PYTHON, Jail

pytestmark = pytest.mark.root
OWNER = 65533


@pytest.fixture
def owned(installed: Installed, tmp_path: Path) -> Jail:
    """A jail that root starts on a workspace of another owner."""
    jail = warm_jail(installed, tmp_path)
    os.chown(jail.workspace, OWNER, OWNER)
    return jail


def mounted(script: str, jail: Jail, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a shell script in a mount namespace whose mounts propagate, as a host's do; $JAIL is the command."""
    start = "mount --make-rshared / && set -e; " + script
    command = ["unshare", "-m", "--propagation", "private", "sh", "-c", start, "sh", *map(str, arguments)]
    environment = {
        **jail.environment,
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "JAIL": str(jail.installed.command),
    }
    return subprocess.run(
        command, cwd=jail.workspace, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def told(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a1_a_mount_beneath_a_read_only_folder_is_read_only_too(owned: Jail, tmp_path: Path) -> None:
    lay(tmp_path, {"given/file": "given", "given/sub/x": "", "given/sub/deeper/x": ""})
    (owned.workspace / "mnt").mkdir()
    program = """
given = sys.argv[1]
attempt("top", lambda: keep(f"{given}/planted", "x"))
attempt("submount", lambda: keep(f"{given}/sub/planted", "x"))
attempt("submount of the submount", lambda: keep(f"{given}/sub/deeper/planted", "x"))
attempt("file in it", lambda: keep(f"{given}/sub/file", "x", os.O_WRONLY))
attempt("submount of the workspace", lambda: keep("mnt/made", "x"))
found["read"] = content(f"{given}/sub/file")
found["rows"] = [row.split()[5].split(",")[0] for row in content("/proc/self/mountinfo").splitlines() if f" {given}" in row]
say()
"""
    script = f"""
mount -t tmpfs none $1/sub; mkdir $1/sub/deeper; mount -t tmpfs none $1/sub/deeper
echo shown > $1/sub/file; chmod -R a+rwX $1; mount -t tmpfs -o mode=777 none mnt
(cd $1/sub && setpriv --reuid {OWNER} --regid {OWNER} --clear-groups sh -c "echo x >> file")
"$JAIL" run --read $1 -- {PYTHON} -I -c "$2" $1
"""
    found = told(mounted(script, owned, tmp_path / "given", PRELUDE + program))
    assert found["read"] == "shown\nx\n", "the control: outside the same uid writes it"
    assert found["submount of the workspace"] == DONE
    assert [found[name] for name in ("top", "submount", "submount of the submount", "file in it")] == [
        "EROFS"
    ] * 4
    assert found["rows"] == ["ro"] * 3


def test_a2_a3_what_the_host_mounts_later_is_not_seen_inside_and_nothing_of_the_jail_outside(
    owned: Jail, tmp_path: Path
) -> None:
    lay(tmp_path, {"given/late/x": "", "given/file": ""})
    (owned.workspace / "late").mkdir()
    program = """
import time
print("started", flush=True)
keep("ready", "x")
while not os.path.exists("go"):
    time.sleep(0.01)
for name in ("late", sys.argv[1] + "/late", "/opt"):
    found[name] = "late-file" in os.listdir(name)
attempt("write", lambda: keep(sys.argv[1] + "/late/planted", "x"))
found["mounts"] = content("/proc/self/mountinfo").count("late-mount")
say()
"""
    script = f"""
cat /proc/self/mountinfo > $3/before
"$JAIL" run --read $1 -- {PYTHON} -I -c "$2" $1 & pid=$!
while ! [ -e ready ]; do sleep 0.02; done
cat /proc/self/mountinfo > $3/during
for at in late $1/late /opt; do mount -t tmpfs -o mode=777 late-mount $at; touch $at/late-file; done
touch go; ls late $1/late /opt > $3/seen
wait $pid
umount late $1/late /opt
cat /proc/self/mountinfo > $3/after
"""
    found = told(mounted(script, owned, tmp_path / "given", PRELUDE + program, tmp_path))
    assert (tmp_path / "seen").read_text().count("late-file") == 3, "the control: the host sees them"
    assert [met for name, met in found.items() if name not in {"write", "mounts"}] == [False] * 3
    assert found["mounts"] == 0
    assert found["write"] == "EROFS"
    before, during, after = ((tmp_path / name).read_text() for name in ("before", "during", "after"))
    assert before == during == after


def test_a23_a_device_node_that_lies_in_the_workspace_opens_nothing(owned: Jail) -> None:
    os.mknod(owned.workspace / "zero", 0o20666, os.makedev(1, 5))
    os.chmod(owned.workspace / "zero", 0o666)
    program = """
attempt("node", lambda: os.close(os.open("zero", os.O_RDONLY)))
attempt("device", lambda: os.close(os.open("/dev/zero", os.O_RDONLY)))
say()
"""
    assert owned.outside(PRELUDE + program) == {"node": DONE, "device": DONE}
    assert owned.inside(PRELUDE + program) == {"node": "EACCES", "device": DONE}


@pytest.mark.parametrize("device", ["null", "zero", "tty"])
def test_a10_a_device_of_the_host_that_was_replaced_is_not_given(
    device: str, owned: Jail, tmp_path: Path
) -> None:
    lay(tmp_path, {"canary": "canary"})
    script = f'mount --bind $1 /dev/{device}; "$JAIL" run -- sh -c "echo ran > ran; cat /dev/{device}"'
    done = mounted(script, owned, tmp_path / "canary")
    assert done.returncode == 78, done.stdout + done.stderr
    assert "canary" not in done.stdout
    assert not (owned.workspace / "ran").exists()
    assert mounted('"$JAIL" run -- sh -c "echo ran > ran"', owned).returncode == 0
    assert (owned.workspace / "ran").exists()


def test_a8_a12_where_proc_is_no_procfs_nothing_is_started(owned: Jail) -> None:
    script = """
mkdir -p fake; mount -t tmpfs none fake; mkdir -p fake/self/fd fake/sys/kernel fake/1
echo 40 > fake/sys/kernel/cap_last_cap; touch fake/self/uid_map fake/self/gid_map fake/self/setgroups fake/self/mountinfo
mount --move fake /proc
"$JAIL" run -- sh -c "echo ran > ran"
"""
    done = mounted(script.replace("mount --move", "mount --make-rprivate /; mount --move"), owned)
    assert done.returncode in {78, 125}, done.stdout + done.stderr
    assert not (owned.workspace / "ran").exists()


SOCKETS = (
    *(
        "docker.sock",
        "podman/podman.sock",
        "containerd/containerd.sock",
        "dbus/system_bus_socket",
        "systemd/private",
    ),
    *(
        "user/65533/bus",
        "user/65533/gnupg/S.gpg-agent",
        "snapd.socket",
        "pcscd/pcscd.comm",
        "libvirt/libvirt-sock",
    ),
)
SERVER = """
import os, socket, sys
os.umask(0)
servers = []
for name in sys.argv[2:]:
    path = f"{sys.argv[1]}/{name}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    servers.append(server)
"""


def test_f1_f2_sockets_of_the_hosts_services_in_run_are_absent_under_each_name(owned: Jail) -> None:
    program = """
for name in sys.argv[1:]:
    for folder in ("/run", "/var/run", "/proc/self/root/run", "/proc/1/root/run"):
        attempt(f"{folder}/{name}", lambda: reach(f"{folder}/{name}"))
say()
"""
    outside = SERVER + (
        "for name in sys.argv[2:]:\n"
        "    with socket.socket(socket.AF_UNIX) as client:\n"
        "        client.connect(f'/run/{name}')\n"  # the control
        "import subprocess\n"
        "command = [os.environ['JAIL'], 'run', '--', '/usr/bin/python3', '-I', '-c', os.environ['PROBE'], *sys.argv[2:]]\n"
        "sys.exit(subprocess.run(command).returncode)\n"
    )
    names = " ".join(SOCKETS)
    script = f'mount -t tmpfs none /run; export PROBE="$1"; {PYTHON} -I -c "$2" /run {names}'
    found = told(mounted(script, owned, PRELUDE + program, outside))
    assert len(found) == 4 * len(SOCKETS)
    assert not offences(found, GONE | {"EACCES"})


def test_f1_a_socket_in_a_system_folder_that_is_given_read_only_takes_no_connection(owned: Jail) -> None:
    program = """
attempt("opt", lambda: reach("/opt/vendor/run/service.sock"))
found["read"] = content("/opt/vendor/file")
say()
"""
    outside = SERVER + (
        "import subprocess\n"
        "with socket.socket(socket.AF_UNIX) as client:\n"
        "    client.connect('/opt/vendor/run/service.sock')\n"  # the control
        "open('/opt/vendor/file', 'w').write('plain')\n"
        "command = [os.environ['JAIL'], 'run', '--', '/usr/bin/python3', '-I', '-c', os.environ['PROBE']]\n"
        "sys.exit(subprocess.run(command).returncode)\n"
    )
    script = f'mount -t tmpfs none /opt; export PROBE="$1"; {PYTHON} -I -c "$2" /opt/vendor/run service.sock'
    found = told(mounted(script, owned, PRELUDE + program, outside))
    assert found["read"] == "plain"
    assert found["opt"] in GONE | {"EACCES", "ECONNREFUSED"}


@pytest.mark.parametrize("wall", ["without walls", "inside"])
def test_a_repository_on_a_file_system_that_is_mounted_in_the_workspace_runs_nothing_afterwards(
    owned: Jail, tmp_path: Path, wall: str
) -> None:
    """Agent case 10."""
    (owned.workspace / "mnt").mkdir()
    program = f"""
git init -q mnt/sub; printf '[core]\\n\\tfsmonitor = "touch {owned.workspace}/mark; false"\\n' >> mnt/sub/.git/config
"""
    run = '"$JAIL" run --' if wall == "inside" else ""
    script = f"""
mount -t tmpfs -o mode=777 none mnt; {run} sh -c "$1"; cd mnt/sub; git -c safe.directory='*' status
"""
    done = mounted(script, owned, program)
    assert done.returncode == 0, done.stderr
    assert (owned.workspace / "mark").exists() == (wall == "without walls")
