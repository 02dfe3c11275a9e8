"""The lines of `jail completion`, taken into the shells they are for: a person types, presses Tab, and sees."""

import time
from pathlib import Path

import pexpect
import pytest

from jail.cli.completion import SHELLS
from support.answers import new_jail
from support.installed import Installed
from support.jails import Jail
from support.ledgers import write

PATIENCE = 60
SESSION = "SESSION"
"""Stands in rows for the id of the one session that there is."""

TYPED = {
    "a command": ("jail verif", "jail verify"),
    "an option": ("jail run --work", "jail run --workspace"),
    "an option of the group": ("jail --vers", "jail --version"),
    "a shipped policy": ("jail run --policy overn", "jail run --policy overnight"),
    "a policy of one's own": ("jail plan --policy mypol", "jail plan --policy mypolicy.toml"),
    "a session": ("jail verify 2", f"jail verify {SESSION}"),
    "the newest session": ("jail verify las", "jail verify last"),
    "a file": ("jail run --read mypol", "jail run --read mypolicy.toml"),
    "a folder": ("jail run --workspace myfol", "jail run --workspace myfolder/"),
    "a variable": ("jail run --env MY_VARI", "jail run --env MY_VARIABLE"),
    "a program": ("jail run -- my-pro", "jail run -- my-program"),
    "no program that would be two commands": ("jail run -- zz", "jail run -- zz"),
    "a file for the program": ("jail run -- cat mypol", "jail run -- cat mypolicy.toml"),
    "a choice": ("jail completion zs", "jail completion zsh"),
    "no option of ours after --": ("jail run -- --work", "jail run -- --work"),
}

# Ctrl-T writes the line as it stands to ~/line; the rest is what the help of `jail completion` says, and a prompt.
SETTINGS = {
    "bash": {
        ".bashrc": """
            PS1='typ''e> '
            eval "$(jail completion bash)"
            bind -x '"\\C-t": printf "%s\\n" "$READLINE_LINE" > ~/line'
        """
    },
    "zsh": {
        ".zshrc": """
            PS1='typ''e> '
            autoload -Uz compinit; compinit -u
            eval "$(jail completion zsh)"
            line() { print -r -- $BUFFER > ~/line }; zle -N line; bindkey '^T' line
        """
    },
    "fish": {
        ".config/fish/config.fish": """
            function fish_prompt; echo 'typ''e> '; end
            bind \\ct 'commandline > ~/line'
        """
    },
}
KEPT = {"fish": ".config/fish/completions/jail.fish"}
"""Where a shell takes the lines from a file."""


def typed(jail: Jail, shell: str) -> dict[str, str]:
    """What stands on the line of `shell` after each row of TYPED and Tab."""
    kept = {KEPT[shell]: jail.call("completion", shell).stdout} if shell in KEPT else {}
    for name, text in {**SETTINGS[shell], **kept}.items():
        path = jail.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    path_variable = f"{jail.installed.command.parent}:{jail.home}/bin:/usr/bin:/bin"
    environment = {**jail.environment, "PATH": path_variable, "MY_VARIABLE": "1", "HISTFILE": ""}
    child: pexpect.spawn[bytes] = pexpect.spawn(
        f"/usr/bin/{shell}", ["-i"], cwd=str(jail.workspace), env=environment, timeout=PATIENCE
    )
    found = {}
    try:
        child.expect_exact(b"type> ")
        for name, (text, _) in TYPED.items():
            (jail.home / "line").unlink(missing_ok=True)
            child.send(text + "\t\x14\x15")
            found[name] = written(child, jail.home / "line")
    finally:
        child.close(force=True)
    return found


def written(child: "pexpect.spawn[bytes]", path: Path) -> str:
    """The line that appears in `path`; what the shell draws meanwhile is read away."""
    end = time.monotonic() + PATIENCE
    drawn = b""
    while not path.exists() or not (text := path.read_text()).endswith("\n"):
        assert time.monotonic() < end, drawn
        try:
            drawn += child.read_nonblocking(4096, timeout=0.01)
        except pexpect.TIMEOUT:
            continue
    return text.rstrip()


@pytest.fixture(scope="module")
def ground(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Jail:
    jail = new_jail(installed, tmp_path_factory.mktemp("completion"))
    (jail.workspace / "mypolicy.toml").touch()
    (jail.workspace / "myfolder").mkdir()
    (jail.home / "bin").mkdir()
    (jail.home / "bin" / "my-program").touch(mode=0o755)
    (jail.home / "bin" / "my-prose").touch(mode=0o644)
    (jail.home / "bin" / "zz;id>pwned").touch(mode=0o755)
    write(str(jail.home / ".local/state/jail"))
    return jail


@pytest.fixture(scope="module", params=SHELLS)
def lines(request: pytest.FixtureRequest, ground: Jail) -> dict[str, str]:
    return typed(ground, request.param)


@pytest.mark.parametrize("what", TYPED)
def test_tab_completes(what: str, lines: dict[str, str], ground: Jail) -> None:
    (session,) = ground.sessions()
    assert lines[what] == TYPED[what][1].replace(SESSION, session.name)


def test_every_shell_that_is_offered_is_tried() -> None:
    assert set(SETTINGS) == set(SHELLS)


def test_a_shell_that_is_not_known_is_named(ground: Jail) -> None:
    done = ground.call("completion", "tcsh")
    assert done.returncode == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in done.stderr


def test_the_lines_start_nothing_that_lies_in_path(ground: Jail) -> None:
    planted = ground.home / "planted"
    planted.mkdir()
    (planted / "bash").write_text(f"#!/bin/sh\ntouch {ground.home}/started\n")
    (planted / "bash").chmod(0o755)
    moved = ground._replace(environment={**ground.environment, "PATH": f"{planted}:/usr/bin:/bin"})
    assert "_JAIL_COMPLETE=bash_complete" in moved.call("completion", "bash").stdout
    assert not (ground.home / "started").exists()
