"""Which toolchains PATH leads to, and what of them the command needs: from each PATH folder outwards, through
symlinks, `#!` lines and the tables of launch/managers.py.

Rule: nothing that PATH names is run; folders are listed and first lines read, each within a bound. Of a
manager or a shape that is known, the named parts are given and no more; of anything else the PATH folder
itself and the single files that it leads to. What a command may have written, in this workspace, in a tree of
an earlier run or in any project, may only point to a known manager. A toolchain whose part the policy does
not use is left out, and the plan says so.
"""

import os
import stat

from jail.launch import firstline, managers, places, tables
from jail.launch.finds import Finds
from jail.launch.managers import Manager, Shape
from jail.launch.searchpath import DISTRIBUTED, LOCAL, Ask
from jail.light import Final
from jail.plan.facts import Place, Toolchain, Tools
from jail.plan.workspace import is_reserved
from jail.policy.paths import beneath, deepest, overlaps

MOST_NAMES: Final = 4096
"""Names of one PATH folder that are looked at; the rest is in the folder all the same."""
MOST_READ: Final = 512
"""Files whose first line is read, in all."""
MOST_LEADS: Final = 1024
"""Ways out of PATH folders that are followed, in all."""
MOST_DEPTH: Final = 16
"""Steps from one file to the next: the kernel follows five interpreters (BINPRM_MAX_RECURSION, fs/exec.c)."""
SHOWN: Final = 8
"""Entries of a file that are named in one note."""
INTERPRETERS: Final = ("python", "node", "ruby", "java", "perl")
"""How names begin that a PATH folder in the workspace may lead out by: `.venv/bin/python`."""


def find(ask: Ask) -> Tools:
    """What the PATH of `ask` leads to; asks the file system, changes nothing."""
    search = _Search(ask)
    for place in ask.path:
        if place.real_kind == "folder" and not place.strays:
            search.entry(place)
    if ask.program:
        doubtful = search.is_doubtful(ask.program.rpartition("/")[0])
        search.follow(ask.program, "the command itself", whatever=not doubtful, known_only=doubtful)
    return search.result()


class _Search(Finds):
    """One search, as it goes on."""

    def __init__(self, ask: Ask) -> None:
        super().__init__(ask)
        self.seen: set[str] = set()
        self.reads = MOST_READ
        self.leads = self.depth = 0
        self.begun: set[str] = set()

    def entry(self, place: Place) -> None:
        """One PATH folder."""
        folder, through = place.real, place.given
        if beneath(folder, self.ask.workspace):
            self._scan_doubtful(folder, through)
            return
        if beneath(self.ask.home, folder):
            return
        if is_reserved(folder) or deepest(folder, self.ask.system):
            self._scan_system(folder, through)
            return
        if place.path != place.real or place.given != place.path:
            self._remember(self._resolved(place.given)[1])
        manager, root = self._owner(folder)
        if manager is not None:
            if not self._used(manager.part, folder, through):
                return
            self._give_manager(manager, root, through)
        elif self.is_doubtful(folder):
            self._give_doubtful(folder, through)
            return
        else:
            prefix, _, name = folder.rpartition("/")
            shape = self._shape(prefix) if name in ("bin", "sbin", "condabin") else None
            if shape is not None and not self._used(shape.part, folder, through):
                return
            if shape is not None:
                self._give_shape(shape, prefix, through)
            elif name in ("bin", "sbin") and prefix not in self.shared and not beneath(prefix, self.ask.home):
                self._add("", "an installation prefix", prefix, through, managers.PREFIX, known=False)
        self._scan(folder, through)

    def _give_doubtful(self, folder: str, through: str) -> None:
        """A virtual environment is given as far as it does not lead out of itself."""
        prefix, _, name = folder.rpartition("/")
        shape = self._shape(prefix) if name == "bin" else None
        if shape is not None and shape.marks == "pyvenv.cfg" and not deepest(prefix, self.ask.written.now):
            if not self._used(shape.part, folder, through):
                return
            self._add(shape.part, shape.name, prefix, through, shape.given, shape.secrets, within=prefix)
        self._scan_doubtful(folder, through)

    def _scan_doubtful(self, folder: str, through: str) -> None:
        for name in tables.listing(folder, MOST_NAMES):
            if name.startswith(INTERPRETERS):
                self.follow(f"{folder}/{name}", f"{through}/{name}", known_only=True)

    def _used(self, part: str, folder: str, through: str) -> bool:
        if part in self.ask.parts or (not part and self.ask.parts):
            return True
        what = f"of the toolchain `{part}`" if part else "of several toolchains"
        self.folders.discard(folder)
        self.left[through] = f"it is {what}, which the policy does not use"
        return False

    def _scan(self, folder: str, through: str) -> None:
        """The links of a PATH folder, the commands that mean a manager, and the scripts' interpreters."""
        for name in tables.listing(folder, MOST_NAMES):
            path, found_through = f"{folder}/{name}", f"{through}/{name}"
            if name in tables.COMMANDS:
                self._give_command(tables.COMMANDS[name], found_through)
            if os.path.islink(path):
                self.follow(path, found_through)
            else:
                self._follow_first_line(path, found_through)
        if folder == f"{self.ask.home}/.local/bin" and "python" in self.ask.parts:
            root = f"{self.ask.home}/.local/lib"
            self._add("python", "pip install --user", root, through, "python3*/site-packages")

    def _scan_system(self, folder: str, through: str) -> None:
        """A folder of the system: commands that keep things in the home folder, links of administrators."""
        for name in DISTRIBUTED:
            if os.path.lexists(f"{folder}/{name}"):
                self._give_command(tables.COMMANDS[name], f"{through}/{name}")
        if folder == LOCAL:
            for name in tables.listing(folder, MOST_NAMES):
                if os.path.islink(f"{folder}/{name}"):
                    self.follow(f"{folder}/{name}", f"{through}/{name}")

    def _give_command(self, manager: Manager, through: str) -> None:
        for known, root in self.roots:
            if known is manager and manager.part in self.ask.parts:
                self._give_manager(manager, root, through)

    def follow(self, path: str, through: str, *, whatever: bool = False, known_only: bool = False) -> None:
        """What `path` leads to, when it is nothing that is given anyway."""
        self.leads += 1
        if self.leads > MOST_LEADS:
            self.notes["PATH leads out to more places than are followed"] = None
            return
        real, links = self._resolved(path)
        if any(self.ask.written.holds(link) for link, _ in links) and self.ask.written.strays(path):
            whatever, known_only = False, True
        if beneath(real, self.ask.workspace) or is_reserved(real):
            return
        if not (self._is_shown(real) or real in self.seen):
            self.depth += 1
            led = self.depth <= MOST_DEPTH and self._lead(real, through, whatever, known_only)
            self.depth -= 1
            if not led:
                return
        self.seen.add(real)
        # What a link in the workspace passes on its way would tell of links that nobody gave.
        if not known_only:
            self._remember(links)

    def _lead(self, real: str, through: str, whatever: bool, known_only: bool) -> bool:
        """Give what `real` is of; False when nothing is given."""
        manager, root = self._owner(real)
        parts = self.ask.parts
        if manager is not None:
            if not (manager.part in parts or (not manager.part and parts)):
                return whatever and self._give_alone(real, through)
            self._give_manager(manager, root, through)
            return self._is_shown(real) or (whatever and self._give_alone(real, through))
        if known_only:
            return self._lead_to_conda(real, through)
        folder, _, _ = real.rpartition("/")
        prefix, _, name = folder.rpartition("/")
        for top in (prefix if name in ("bin", "sbin") else "", real):
            shape = self._shape(top) if top else None
            if shape is not None:
                if not whatever and shape.part not in parts:
                    return False
                self._give_shape(shape, top, through)
                return True
        return self._give_application(real, through, whatever)

    def _lead_to_conda(self, real: str, through: str) -> bool:
        """A conda has its own mark and no usual place; outside of projects it is as known as a manager."""
        top = real.partition("/bin/")[0]
        shape = self._shape(top)
        if shape is None or shape.marks != "conda-meta" or shape.part not in self.ask.parts:
            return False
        if self.is_doubtful(f"{top}/bin"):
            return False
        self._give_shape(shape, top, through)
        return self._is_shown(real)

    def _give_application(self, real: str, through: str, whatever: bool) -> bool:
        """A program of no known kind: its own prefix or folder, where no other things are, else it alone."""
        folder, _, _ = real.rpartition("/")
        prefix, _, name = folder.rpartition("/")
        modules = real.find("/node_modules/")
        if modules > 0:
            if not whatever and "node" not in self.ask.parts:
                return False
            top = real[:modules]
            self._add("node", "packages of npm", top, through, "node_modules")
            return True
        area = deepest(real, [f"{self.ask.home}/.local/{name}" for name in ("share", "lib", "opt")])
        inner = area and real[len(area) + 1 :].count("/") > 1
        if inner and name in ("bin", "sbin"):
            self._add("", "an application's prefix", prefix, through, managers.PREFIX, known=False)
            return True
        if inner and firstline.read(real).startswith(b"#!"):
            self._add("", "an application's folder", folder, through, ".", known=False)
            self._follow_first_line(real, through)
            return True
        return self._give_alone(real, through)

    def _give_alone(self, real: str, through: str) -> bool:
        try:
            mode = os.stat(real).st_mode
        except OSError:
            return False
        if not (stat.S_ISREG(mode) and mode & 0o111):
            return False
        folder, _, name = real.rpartition("/")
        self._add("", "a program", folder, through, name, known=False)
        self._follow_first_line(real, through)
        return True

    def _follow_first_line(self, path: str, through: str) -> None:
        if self.reads <= 0:
            return
        self.reads -= 1
        interpreter = firstline.interpreter(firstline.read(path))
        if interpreter:
            written = self.ask.written.holds(os.path.realpath(path))
            self.follow(interpreter, f"{through} (#!)", known_only=written)

    def _give_manager(self, manager: Manager, root: str, through: str) -> None:
        if root in self.begun:
            return
        self.begun.add(root)
        patterns = tables.of_parts(manager, root, self.ask.parts)
        self._add(manager.part, manager.name, root, through, patterns, manager.secrets)
        if manager.sets:
            self.variables[manager.sets] = root
        for name in manager.choices.split():
            value = self.ask.environ.get(name, "")
            if tables.is_plain(value):
                self.variables[name] = value
        if manager.name == "mise":
            self.variables["MISE_TRUSTED_CONFIG_PATHS"] = self.ask.workspace
        if manager.files:
            self._give_settings(manager, through)
        for pattern in manager.follow.split():
            for path in tables.expand(root, pattern):
                if os.path.islink(path) and self._is_shown(path):
                    self.follow(path, f"{manager.name}: {path}")
        for known, its_root in self.roots:
            if known.name in manager.needs.split():
                self._give_manager(known, its_root, f"{manager.name}, which needs it")

    def _give_settings(self, manager: Manager, through: str) -> None:
        """What is understood of the manager's own settings in the home folder."""
        from jail.launch import settings

        for name in manager.files.split():
            path = f"{self.ask.home}/{name}"
            if not os.path.isfile(path) or self.ask.written.strays(path):
                continue
            real, links = self._resolved(path)
            known = settings.read(real, name)
            if known is None:
                self.notes[f"{path} is not given: its form is not understood"] = None
                continue
            if known.left:
                some = ", ".join(known.left[:SHOWN]) + (", …" if len(known.left) > SHOWN else "")
                self.notes[f"of {path} only what is known to be no secret is given, not {some}"] = None
            if known.text and not is_reserved(real) and not beneath(real, self.ask.workspace):
                self._remember(links)
                self.settings[real] = (known.text, f"{manager.name}'s settings, through {through}")

    def _give_shape(self, shape: Shape, root: str, through: str) -> None:
        self._add(shape.part, shape.name, root, through, shape.given, shape.secrets)
        for name in ("bin/python", "bin/python3"):
            if shape.name == "a virtual environment" and os.path.islink(f"{root}/{name}"):
                self.follow(f"{root}/{name}", f"{through}: the Python of {root}")

    def _add(  # noqa: PLR0913 - what a toolchain is, and what it must not lead out of
        self,
        part: str,
        name: str,
        root: str,
        through: str,
        given: str,
        secrets: str = "",
        *,
        known: bool = True,
        within: str = "/",
    ) -> None:
        paths = [
            path
            for pattern in given.split()
            for path in tables.expand(root, pattern)
            if beneath(os.path.realpath(path), within) and not self.ask.written.strays(path)
        ]
        key = root if root not in self.found else f"{root} {given}"
        if key in self.found or not paths:
            return
        unseen = set[str]()
        hidden = [
            tables.canonical(path) for word in secrets.split() for path in tables.expand(root, word, unseen)
        ]
        why = f"{name}, through {through}"
        looked = [places.look(path)._replace(given=why) for path in paths]
        looked = [place for place in looked if place.real_kind in ("file", "folder")]
        looked = [place for place in looked if not self._is_unseen(place, unseen)]
        for place in looked:
            if place.kind == "symlink":
                self._remember(self._resolved(place.path)[1])
        self.given += [place.real for place in looked]
        self.found[key] = Toolchain(
            part, name, root, through, tuple(looked), tuple(dict.fromkeys(hidden)), known
        )

    def _is_unseen(self, place: Place, unseen: set[str]) -> bool:
        """Whether `place` may hold secrets that no pattern found."""
        for folder in unseen:
            if overlaps(place.real, os.path.realpath(folder)):
                why = "cannot be listed, or has more entries than are looked into"
                self.notes[f"{place.path} is not given, as secrets may lie in it: {folder} {why}"] = None
                return True
        return False
