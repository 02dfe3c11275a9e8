"""Where links of the host lead whose names a table speaks of.

Rule: a program that runs `Makefile` or obeys `CLAUDE.md` follows it when it is a link, so what a change does
to the file that it leads to, it does to that name. Only links that were there when the run began count: those
that the command made are changes themselves. They are looked for once, at the first question.
"""

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final

from jail.hold import base, store, tiers
from jail.hold.store import Manifest
from jail.plan.held import FILE

LINKS: Final = 20_000
"""Links of one tree that are looked at; stores of packages have some thousands."""
STEPS: Final = 8
"""Links that one leads through."""


def of_host(session_folder: str, manifest: Manifest) -> Callable[[str], Sequence[str]]:
    """The absolute path of a change → the paths by which the host's links lead to it, or to what it holds."""

    @lru_cache(maxsize=1)
    def found() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        to: dict[str, list[str]] = {}
        through: dict[str, list[str]] = {}
        held = store.folder_of(session_folder)
        for thing in manifest.held:
            if thing.kind == FILE:
                continue
            for path in islice(base.symlinks(held, thing.name), LINKS):
                link = f"{thing.path.rstrip('/')}/{path}"
                if tiers.is_spoken_of(link, manifest.workspace):
                    for place in _places(link):
                        to.setdefault(place, []).append(link)
                        while place := place[: place.rindex("/")]:
                            through.setdefault(place, []).append(link)
        return to, through

    @lru_cache(maxsize=256)
    def beneath(folder: str) -> tuple[str, ...]:
        to, _ = found()
        ways = []
        here = folder
        while here:
            ways += [link + folder[len(here) :] for link in to.get(here, ())]
            here = here[: here.rindex("/")]
        return tuple(ways)

    def leads(path: str) -> Sequence[str]:
        to, through = found()
        if not to:
            return ()
        folder, _, name = path.rpartition("/")
        own = (*to.get(path, ()), *through.get(path, ()))
        return (*own, *(f"{way}/{name}" for way in beneath(folder)))

    return leads


def _places(link: str) -> list[str]:
    """Where a link leads, and the links on its way."""
    places = []
    here = link
    for _ in range(STEPS):
        try:
            target = os.readlink(here)
        except OSError:
            break
        folder, name = os.path.split(os.path.normpath(os.path.join(os.path.dirname(here), target)))
        here = os.path.join(os.path.realpath(folder), name)
        places.append(here)
    last = os.path.realpath(link)
    return list(dict.fromkeys(place for place in (*places, last) if place not in (link, "/")))
