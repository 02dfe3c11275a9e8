"""D: setuid and capable files, other entries into the kernel, and sandboxes inside the sandbox."""

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from jail.kernel import syscalls
from support.answers import PRELUDE, Attempt, judge, new_jail, numbers, run_table
from support.entries import Entries, compile_entries
from support.installed import Installed
from support.jails import PYTHON, Jail


@pytest.fixture(scope="module")
def folder(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Jail:
    return new_jail(installed, tmp_path_factory.mktemp("privileges"))


@pytest.fixture(scope="module")
def entries(folder: Jail) -> Entries:
    return compile_entries(folder.workspace)


SETUID = r'''
def full_pipe():
    """A pipe that holds whoever writes to it."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    try:
        while True:
            os.write(write, bytes(65536))
    except BlockingIOError:
        os.set_blocking(write, True)
    return read, write

def effective(program):
    """The effective uid that the kernel gives to `program`, held while it prints its help."""
    read, write = full_pipe()
    child = subprocess.Popen([program, "--help"], stdin=subprocess.DEVNULL, stdout=write, stderr=write)
    end = time.monotonic() + 60
    try:
        while time.monotonic() < end:
            fields = status_of(child.pid, "Name", "State", "Uid")
            if fields["Name"] == os.path.basename(program)[:15] and fields["State"].startswith("S"):
                return int(fields["Uid"].split()[1])
            time.sleep(0.002)
        return None
    finally:
        child.kill()
        child.wait()
        os.close(read)
        os.close(write)

print(json.dumps([os.getuid(), {program: effective(program) for program in sys.argv[2:]}]))
'''


def test_d29_a_setuid_program_runs_as_who_started_it(folder: Jail) -> None:
    there = [f"/usr/bin/{name}" for name in ("su", "mount", "umount", "passwd", "newgrp", "sudo", "pkexec")]
    programs = [path for path in there if Path(path).exists() and Path(path).stat().st_mode & 0o4000]
    if not programs:
        pytest.skip("this system has no setuid program")
    uid, inside = folder.inside(PRELUDE + SETUID, numbers(), *programs)
    _, outside = folder.outside(PRELUDE + SETUID, numbers(), *programs)
    assert inside == dict.fromkeys(programs, uid)
    assert outside == dict.fromkeys(programs, 0), "no positive control"


x86_64 = pytest.mark.skipif(syscalls.native().name != "x86_64", reason="an entry of x86 processors")
SIGSYS = 128 + 31


@x86_64
def test_d2_agent_21_no_x32_number_reaches_the_kernel(folder: Jail, entries: Entries) -> None:
    done = folder.run(entries.program, "x32")
    assert (done.returncode, done.stdout) == (0, "0\n"), (
        "so many numbers were answered by something else than ENOSYS"
    )
    control = folder.run(entries.program, "native")
    assert control.stdout == "1\n", "no positive control: the same entry does not work with native numbers"


@x86_64
def test_d1_agent_21_the_32_bit_entry_ends_the_process(folder: Jail, entries: Entries) -> None:
    control = subprocess.run(
        [entries.program, "int80"], capture_output=True, text=True, check=False, timeout=20
    )
    if control.returncode == -11:
        pytest.skip("this kernel has no IA32 emulation")
    assert control.stdout == "1\n", "no positive control"
    done = folder.run(entries.program, "int80")
    assert (done.returncode, done.stdout) == (SIGSYS, "")


@x86_64
def test_d1_a_32_bit_program_ends_at_its_first_call(folder: Jail, entries: Entries) -> None:
    if entries.program_32 is None:
        pytest.skip("gcc cannot make 32-bit programs here")
    control = subprocess.run([entries.program_32], check=False, timeout=20)
    assert control.returncode == 7, "no positive control"
    assert folder.run(entries.program_32).returncode == SIGSYS


def test_d7_agent_24_programs_that_make_namespaces_are_refused(folder: Jail) -> None:
    programs = {
        "unshare": ["unshare", "-Ur", "true"],
        "bwrap": ["bwrap", "--ro-bind", "/", "/", "--unshare-all", "true"],
    }
    for name, command in programs.items():
        if shutil.which(name) is None:
            continue
        control = subprocess.run(command, capture_output=True, check=False, timeout=20)
        assert control.returncode == 0, f"no positive control: {command}"
        done = folder.run(*command)
        assert done.returncode != 0, command
        assert "Operation not permitted" in done.stderr or "No permissions" in done.stderr, done.stderr


def test_agent_8_the_installed_jail_is_not_there_inside(folder: Jail) -> None:
    done = folder.run(folder.installed.command, "run", "--", "true")
    assert done.returncode == 127, done.stderr
    assert folder.installed.command.exists()


def test_agent_8_j14_a_jail_that_the_agent_installs_for_itself_is_refused_in_words(folder: Jail) -> None:
    """As `pip install jail` inside would leave it: a copy of the package, started by the system's Python."""
    copy = folder.workspace.parent / "copy"
    shutil.copytree(folder.installed.packages, copy)
    program = (
        f"import sys; sys.path.append({str(copy)!r}); from jail.cli.main import main; "
        f"sys.exit(main(['run', '--workspace', {str(folder.workspace)!r}, '--', 'touch', 'nested']))"
    )
    control = subprocess.run(
        [PYTHON, "-I", "-S", "-c", program],
        env=dict(folder.environment),
        capture_output=True,
        text=True,
        check=False,
    )
    assert control.returncode == 0, control.stderr
    assert (folder.workspace / "nested").exists(), "no positive control: the copy does not run outside either"
    (folder.workspace / "nested").unlink()
    done = folder.run(PYTHON, "-I", "-S", "-c", program, options=["--read", copy])
    assert done.returncode == 78, done.stderr
    assert not (folder.workspace / "nested").exists()
    assert done.stderr.startswith("jail: ")
    assert "Traceback" not in done.stderr


NET_RAW = struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0)
"""struct vfs_cap_data, revision 2, effective (<linux/capability.h>)."""


@pytest.mark.root
def test_d29_d30_a_setuid_or_capable_file_of_root_in_the_workspace_gives_nothing(folder: Jail) -> None:
    """On a workspace of another owner: root's files, one setuid, one with CAP_NET_RAW."""
    owner = 65533
    workspace = folder.workspace
    entry = compile_entries(folder.workspace).program
    subprocess.run(["chown", "-R", f"{owner}:{owner}", workspace], check=True)
    for place in (workspace.parent, *workspace.parent.parents):
        if place.stat().st_mode & 0o005 != 0o005:
            place.chmod(place.stat().st_mode | 0o055)
    setuid, capable = workspace / "setuid", workspace / "capable"
    for copy in (setuid, capable):
        shutil.copyfile(entry, copy)
        copy.chmod(0o755)
    setuid.chmod(0o4755)
    os.setxattr(capable, "security.capability", NET_RAW)
    for program, gained in ((setuid, "uid 65533 0\n"), (capable, "CapEff:\t0000000000002000\n")):
        control = subprocess.run(
            [program, "credentials"],
            user=owner,
            group=owner,
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        )
        assert gained in control.stdout, "no control"
        done = folder.run(program, "credentials")
        if done.returncode == 126:
            continue  # execve(2): a file whose capabilities cannot be had is not executed
        assert "uid 65533 65533\n" in done.stdout, done.stdout + done.stderr
        assert "CapEff:\t0000000000000000" in done.stdout
        assert "CapPrm:\t0000000000000000" in done.stdout


@pytest.mark.root
def test_d26_started_by_root_there_are_no_raw_sockets(folder: Jail) -> None:
    attempts = [Attempt("D26", "a raw socket", "call('socket', 2, 3, 1)", "EPERM", "ok")]
    judge(attempts[0], run_table(folder, attempts, ["socket"]))
