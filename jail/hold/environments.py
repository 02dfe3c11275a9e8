"""Folders of commands that no PATH has yet, and that tools put first: of virtual environments, of npm.

Rule: `bin` beside a pyvenv.cfg (PEP 405) is first in PATH once somebody activates it, an editor or direnv
for them; `node_modules/.bin` is whenever `npm run` runs something. So a name there that the system has too is
a command of the host in waiting, but for a link to the program of that name itself, as `python3 -m venv`
makes it.
"""

import os.path
from typing import Final

from jail.hold.change import Change
from jail.hold.ground import Ground
from jail.plan.held import STORES
from jail.plan.protected import canonical

SYSTEM: Final = ("/usr/local/bin", "/usr/bin", "/bin")
"""Where commands are on any host, whatever the PATH of the launch was."""
_FOLDERS: Final = ("bin", "scripts")
_CONFIG: Final = "pyvenv.cfg"


def unversioned(name: str) -> str:
    """A command's name as it is compared: without a version at its end."""
    folded = canonical(name)
    return folded.rstrip("0123456789.-") or folded


def is_of_commands(folder: str, ground: Ground) -> bool:
    """Whether an absolute folder of a held thing becomes one of PATH by itself."""
    above, _, name = folder.rpartition("/")
    holder = canonical(os.path.basename(above))
    if canonical(name) == ".bin":
        return holder == "node_modules"
    if canonical(name) not in _FOLDERS:
        return False
    return holder in STORES or _has_config(above, ground)


def _has_config(above: str, ground: Ground) -> bool:
    config, sides = f"{above}/{_CONFIG}", ground.contents
    return sides.new(config) is not None or sides.old(config) is not None or bool(sides.target(config))


def is_the_program(change: Change, whole: str, ground: Ground) -> bool:
    """Whether a change, of the absolute path `whole`, is a link to the command of its name outside of the
    workspace, or to the one beside it.
    """
    if change.new.kind != "symlink":
        return False
    target = ground.contents.target(whole)
    folder, name = os.path.split(target)
    if not name or unversioned(name) != unversioned(os.path.basename(whole)):
        return False
    if not folder:
        return canonical(name) != canonical(os.path.basename(whole))
    system = os.path.isabs(target) and os.path.normpath(folder) == folder
    return system and folder in SYSTEM
