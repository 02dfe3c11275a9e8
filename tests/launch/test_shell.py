"""Which shell is opened, and that its prompt is marked by arguments and environment alone."""

import os
import shutil
from pathlib import Path

import pytest

from jail.launch.shell import MARK, SHELLS, choose

BASH = next(path for path in ("/bin/bash", "/usr/bin/bash") if os.path.exists(path))


@pytest.mark.parametrize("given", ["", "/absent/bash", "bash", "/usr/bin/env", "/bin/sh/bash", "/bin"])
def test_without_a_shell_of_the_systems_bash_is_opened(given: str) -> None:
    command, prompt = choose({"SHELL": given}, ())
    assert command == ("/bin/bash", "--norc")
    assert prompt.startswith(MARK)
    assert choose({}, ()) == (command, prompt)


def test_a_shell_outside_the_system_is_not_taken_nor_a_link_that_leads_there(tmp_path: Path) -> None:
    (tmp_path / "zsh").symlink_to(BASH)
    shutil.copy(BASH, tmp_path / "bash")
    for name in ("zsh", "bash"):
        assert choose({"SHELL": str(tmp_path / name)}, ())[0][0] == "/bin/bash"


def test_the_persons_shell_gets_the_arguments_after_ours() -> None:
    assert choose({"SHELL": "/bin/sh"}, ("-c", "exit 3")) == (("/bin/sh", "-c", "exit 3"), f"{MARK}$ ")
    assert choose({"SHELL": BASH}, ("-x",))[0] == (BASH, "--norc", "-x")


@pytest.mark.parametrize("name", SHELLS)
def test_each_shells_prompt_is_marked_and_it_reads_no_file_of_the_persons(name: str) -> None:
    shell = SHELLS[name]
    assert MARK in shell.prompt + " ".join(shell.arguments)
