"""The modules of the launch path in one file: what each .pyc is to one module, this is to all that a plain
`jail run` imports.

Rule: an image is made of the modules' own compiled code, lies with it in `__pycache__`, can be written by
whoever can write that, and is trusted as that is. It counts only while every source has the size and time
that it was made from; anything odd about it means ordinary imports, silently. Why: seventy times finding,
reading and decoding one file each was a tenth of a launch.
"""

import marshal
import os
import sys

from jail.light import Any, Final

_COLD: Final = frozenset(["click", "jail.kernel.filters_build", "jail.policy.parse"])
"""A launch that imported one of these is no model of a plain one: it had a cache to fill, or asked click."""
_BEFORE: Final = frozenset(["jail", "jail.image", "jail.light"])
"""What is imported before an image can be used."""
_Codes = dict[str, tuple[str, bool, Any]]
"""Module → its source, whether it is a package, and its code."""


def use(package: str) -> bool:
    """Have jail's modules come from the image of the folder `package`; False where there is no good one."""
    try:
        fd = os.open(_path(package), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        stamp, codes = marshal.loads(os.read(fd, os.fstat(fd).st_size))  # noqa: S302 - trusted as the .pyc beside it
        if stamp != _stamp(package, codes):
            return False
    except (OSError, ValueError, TypeError, EOFError):
        return False
    finally:
        os.close(fd)
    sys.meta_path.insert(0, _Finder(codes, _path(package)))  # type: ignore[arg-type]  # as PEP 451 has finders
    return True


def keep(package: str) -> None:
    """Make the image of what was imported, for the next launch; where that cannot be, nothing is said."""
    if sys.dont_write_bytecode or _COLD & sys.modules.keys():
        return
    partial = f"{_path(package)}.{os.getpid()}"
    try:
        # First, since most who may not write here find out at every launch.
        fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError:
        return
    try:
        loaders = _imported()
        before = _stamp(package, loaders)
        codes: _Codes = {
            name: (source, is_package, loader.get_code(name))
            for name, (source, is_package, loader) in loaders.items()
        }
        content = marshal.dumps((before, codes))  # type: ignore[arg-type]  # strings, numbers, codes
        whole = os.write(fd, content) == len(content)
        # A source that was replaced meanwhile must not vouch for what was read before.
        kept = whole and _stamp(package, loaders) == before
        os.rename(partial, _path(package)) if kept else os.unlink(partial)
    except (OSError, ValueError, ImportError):
        os.unlink(partial)
    finally:
        os.close(fd)


def _path(package: str) -> str:
    return f"{package}/__pycache__/launch.{sys.implementation.cache_tag}.image"


def _imported() -> _Codes:
    """As _Codes, with each module's loader in place of its code."""
    found: _Codes = {}
    for name, module in [*sys.modules.items()]:
        source = getattr(module, "__file__", None)
        if name.startswith("jail.") and name not in _BEFORE and source:
            found[name] = (source, hasattr(module, "__path__"), module.__spec__.loader)  # type: ignore[union-attr]  # it came from a file
    return found


def _stamp(package: str, codes: _Codes) -> tuple[object, ...]:
    """What the codes were made of: this interpreter, these sources."""
    states = [os.stat(source) for source, _, _ in codes.values()]
    return (sys.version, package, *((state.st_size, state.st_mtime_ns) for state in states))


class _Finder:
    """Finder and loader in one (PEP 451); what the image does not have is found as ever."""

    def __init__(self, codes: _Codes, origin: str) -> None:
        self._codes = codes
        self._origin = origin

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:  # noqa: ARG002 - PEP 451
        """The spec of a module of the image, or None."""
        if name not in self._codes:
            return None
        source, is_package, _ = self._codes[name]
        spec = _SPEC(name, self, origin=source, is_package=is_package)  # type: ignore[arg-type]  # it is a loader
        spec.has_location = True
        spec.cached = self._origin
        if is_package:
            spec.submodule_search_locations = [source.rpartition("/")[0]]
        return spec

    def create_module(self, spec: object) -> None:
        """An ordinary module."""

    def exec_module(self, module: object) -> None:
        """Run the module's code, which is needed once."""
        names = module.__dict__
        exec(self._codes.pop(names["__name__"])[2], names)  # noqa: S102 - that is importing


_SPEC: Final = type(sys.__spec__)
"""importlib.machinery.ModuleSpec, without importing importlib."""
