"""Where the command's program really lies, and what it cannot run without.

Rule: installers put a link into a PATH folder and the program elsewhere (`~/.local/bin/claude` leads into
`~/.local/share`), so the link's target is given read-only, and with a script of a virtual environment the
environment and the interpreter that it was made of. Nothing in the workspace is followed.
"""

import os

from jail.light import Callable
from jail.plan.facts import Place
from jail.policy.paths import beneath


def needed(
    command: str, path: tuple[Place, ...], workspace: str, look: "Callable[[str], Place]"
) -> list[Place]:
    """Places to give beside the PATH folders; `given` says why. None for what lies in one itself."""
    found = _find(command, path, workspace)
    if not found:
        return []
    real = os.path.realpath(found)
    if real == found:
        return []
    why = f"{command} in PATH leads there"
    environment = os.path.dirname(os.path.dirname(real))
    if not os.path.isfile(f"{environment}/pyvenv.cfg"):
        return [look(real)._replace(given=why)]
    return [look(environment)._replace(given=why), *_interpreter(environment, why, look)]


def _find(command: str, path: tuple[Place, ...], workspace: str) -> str:
    if "/" in command:
        return ""
    for place in path:
        candidate = f"{place.real}/{command}"
        if place.strays or place.real_kind != "folder":
            continue
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return "" if beneath(place.real, workspace) else candidate
    return ""


def _interpreter(environment: str, why: str, look: "Callable[[str], Place]") -> list[Place]:
    """The prefix of the interpreter that a virtual environment's `python` leads to (venv, PEP 405)."""
    real = os.path.realpath(f"{environment}/bin/python")
    if not os.path.isfile(real) or real.startswith("/usr/"):
        return []
    return [look(os.path.dirname(os.path.dirname(real)))._replace(given=f"{why}, and needs it")]
