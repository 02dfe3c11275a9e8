"""The smallest whole: a command runs inside, sees the workspace, and its exit code comes out."""

from support.jails import Jail


def test_a_command_runs_inside_and_its_exit_code_and_files_come_out(jail: Jail) -> None:
    done = jail.run("sh", "-c", "echo made > made; pwd; exit 7")
    assert done.returncode == 7, done.stderr
    assert done.stdout == f"{jail.workspace}\n"
    assert (jail.workspace / "made").read_text() == "made\n"


def test_the_ledger_of_a_run_verifies(jail: Jail) -> None:
    jail.run("true")
    done = jail.call("verify", "last")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [entry["kind"] for entry in jail.ledger()] == ["start", "probes", "running", "end"]
