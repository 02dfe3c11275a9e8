"""PATH as the caller has it, and whether it leads out of the system's folders.

Rule: this much is looked at by every run, and is cheap; only where PATH does lead out is the search for
toolchains (launch/toolchains.py) imported at all.
"""

import os

from jail.launch import places
from jail.launch.ways import Written
from jail.light import Final, Mapping, NamedTuple
from jail.plan.facts import Place, Tools
from jail.policy.paths import deepest

LOCAL: Final = "/usr/local/bin"
"""Where administrators put links to programs that lie elsewhere."""
DISTRIBUTED: Final = ("rustup", "uv")
"""Programs that distributions package and that keep what they install in the home folder."""


def entries(environ: Mapping[str, str], written: Written) -> tuple[Place, ...]:
    """PATH, entry by entry, as places."""
    return tuple(_entry(text, written) for text in environ.get("PATH", "").split(":"))


def _entry(text: str, written: Written) -> Place:
    if not text.startswith("/"):
        return Place(text, "", "absent", "")
    given = os.path.normpath(text)
    return places.look(given)._replace(strays=written.strays(given))


class Ask(NamedTuple):
    """What a search starts from. `path`: PATH, entry by entry; `written`: trees that commands may have
    changed; `system`: canonical trees that are given anyway; `parts`: names in TOOLCHAINS that the policy
    uses; `program`: the command's own file where it lies outside of them, "" where it does not.
    """

    path: tuple[Place, ...]
    environ: Mapping[str, str]
    home: str
    written: Written
    system: tuple[str, ...]
    parts: tuple[str, ...]
    program: str = ""

    @property
    def workspace(self) -> str:
        """The workspace of this run."""
        return self.written.workspace


def tools(ask: Ask, command: str) -> Tools:
    """What PATH and the command lead to outside of the system's trees."""
    program = _program(command, ask.path, ask.written)
    if program and deepest(os.path.realpath(program), ask.system):
        program = ""
    if not program and not any(_leads_out(place, ask.system, ask.parts) for place in ask.path):
        return Tools()
    from jail.launch import toolchains

    return toolchains.find(ask._replace(program=program))


def _leads_out(place: Place, trees: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    if place.real_kind != "folder" or place.strays:
        return False
    if not deepest(place.real, trees):
        return True
    if not parts:
        return False
    if place.real == LOCAL:
        return _has_links_out(trees)
    return any(os.path.lexists(f"{place.real}/{name}") for name in DISTRIBUTED)


def _has_links_out(trees: tuple[str, ...]) -> bool:
    try:
        with os.scandir(LOCAL) as found:
            links = [entry.path for entry in found if entry.is_symlink()]
    except OSError:
        return False
    return any(not deepest(os.path.realpath(link), trees) for link in links)


def _program(command: str, path: tuple[Place, ...], written: Written) -> str:
    """The link that a command's name stands for; "" where it is none, or a command's."""
    if "/" in command:
        return ""
    for place in path:
        candidate = f"{place.real}/{command}"
        if place.strays or place.real_kind != "folder":
            continue
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            inside = written.holds(place.real) or os.path.realpath(candidate) == candidate
            return "" if inside else candidate
    return ""
