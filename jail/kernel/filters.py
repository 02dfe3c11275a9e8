"""The two seccomp programs of a run: built once, and kept as bytes for the next launch (jail.kernel.cache).

Rule: a launch that finds good ones imports neither pyseccomp nor the rules; what builds and checks a filter
is `jail.kernel.filters_build`.
"""

import os

from jail import __version__
from jail.kernel import cache
from jail.light import Final, NamedTuple


class Filters(NamedTuple):
    """Arrays of struct sock_filter: install `guard` first, then `deny`."""

    guard: bytes
    deny: bytes


_NAME: Final = "filters"
_MAKERS: Final = ("bpf.py", "denials.py", "filters_build.py", "guard.py", "syscalls.py")
"""The modules of this room that decide what the programs are."""
_LENGTH: Final = 4


def compiled(cache_folder: str) -> Filters:
    """The filters for this machine and this version of jail, from `cache_folder` if it has good ones.

    Raises JailError: 78 where libseccomp or pyseccomp is missing or the architecture is not known, and a
    defect of ours where the built filter is not what the rules say.
    """
    folder = os.path.dirname(os.path.abspath(__file__))
    key = cache.key(_NAME, __version__, os.uname().machine, cache.generation(folder, _MAKERS))
    kept = cache.read(cache_folder, _NAME, key)
    if kept is None:
        kept = _packed(_built())
        cache.write(cache_folder, _NAME, key, kept)
    end = _LENGTH + int.from_bytes(kept[:_LENGTH], "little")
    return Filters(kept[_LENGTH:end], kept[end:])


def _built() -> Filters:
    from jail.kernel import filters_build, guard, syscalls

    arch = syscalls.native()
    return Filters(guard.program(arch), filters_build.build(arch))


def _packed(made: Filters) -> bytes:
    return len(made.guard).to_bytes(_LENGTH, "little") + made.guard + made.deny
