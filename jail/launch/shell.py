"""Which shell `jail shell` opens, and how its prompt says that one is inside.

Rule: the mark comes by the environment and by arguments alone: no file of the person's is read (they are not
inside) and none is written. A shell from the system's folders is taken, since nothing else is sure to exist
inside.
"""

import os

from jail.light import Final, Mapping, NamedTuple
from jail.policy.paths import beneath

MARK: Final = "(jail) "

_FISH: Final = (
    "functions -c fish_prompt jail_prompt; "
    f"function fish_prompt; echo -n '{MARK}'; jail_prompt; end; "
    "function fish_title; end; "  # it would set the terminal's title at each prompt
    "set -g fish_greeting"
)


class Shell(NamedTuple):
    """How one shell starts: arguments before the person's own, and its prompt, "" where arguments set it."""

    arguments: tuple[str, ...]
    prompt: str


_PLAIN: Final = Shell((), f"{MARK}$ ")
SHELLS: Final = {
    "bash": Shell(("--norc",), rf"{MARK}\w\$ "),
    "zsh": Shell(("-f",), f"{MARK}%~%# "),  # without -f it asks a new user many questions
    "fish": Shell(("--init-command", _FISH), ""),
    "sh": _PLAIN,
    "dash": _PLAIN,
    "ksh": _PLAIN,
    "mksh": _PLAIN,
}
"""Name of the program → how it starts. PS1 is each one's own way to write a prompt."""
_SYSTEM: Final = ("/usr", "/bin", "/opt", "/nix/store", "/gnu/store", "/run/current-system")
_ELSE: Final = ("/bin/bash", "/usr/bin/bash", "/bin/sh")


def choose(environ: Mapping[str, str], arguments: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """The command of `jail shell ARGUMENTS`, and the value of PS1 for it, "" for none."""
    path = next((path for path in (environ.get("SHELL", ""), *_ELSE) if _fits(path)), "/bin/sh")
    shell = SHELLS[os.path.basename(path)]
    return (path, *shell.arguments, *arguments), shell.prompt


def _fits(path: str) -> bool:
    """Whether it is a shell that we know, of the system's, also where a link in /bin leads elsewhere."""
    real = os.path.realpath(path)
    return (
        os.path.basename(path) in SHELLS
        and all(any(beneath(each, folder) for folder in _SYSTEM) for each in (path, real))
        and os.access(path, os.X_OK)
    )
