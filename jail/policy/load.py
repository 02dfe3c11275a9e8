"""The policy of a run, and what is kept of it, so that a launch parses no TOML.

Rule: what is kept (jail.kernel.cache) has as its key the content of each file of the person and of the
project, or that there is none, and everything else that decides the result: the home folder, jail's and
Python's version, and the state of the modules that judge, so that an updated checkout does not trust what
older checks let pass. The shipped files are part of jail as its modules are, and are told by their state.
"""

import marshal
import os
import sys

from jail import __version__
from jail.kernel import cache
from jail.kernel.digest import sha256_hex
from jail.light import Final
from jail.policy import sources
from jail.policy.sources import Given, shipped_folder
from jail.policy.value import Policy

_JUDGES: Final = (
    *("compose.py", "narrow.py", "parse.py", "shape.py", "check.py", "names.py", "paths.py", "limits.py"),
    *("amounts.py", "draft.py", "sources.py", "value.py"),
)
"""The modules of this room on which the result depends."""


def load(
    chosen: str | None, cache_folder: str | None, home: str, *, user: str = "", workspace: str = ""
) -> Policy:
    """The policy of a run: `chosen` is the value of --policy, None for none. PolicyFaults where a file is
    wrong, JailError where one cannot be read or anybody may write it.

    `home` is the home folder that `~` means; `user` the person's own file and `workspace` the folder whose
    project file takes part, "" for neither. `cache_folder` is made (0700) where absent; None is no cache.
    """
    given = sources.gather(chosen, home, user, workspace)
    if cache_folder is None:
        return _composed(given)[0]
    texts = (given.own, given.user, given.project)
    # One for each choice and each project, whatever they say.
    name = f"policy-{cache.key(given.level, *(text.file if text else '' for text in texts)).hex()[:32]}"
    judges = cache.generation(os.path.dirname(os.path.abspath(__file__)), _JUDGES)
    key = cache.key("policy", *_deciding(given), __version__, sys.version, judges)
    kept = _kept(cache_folder, name, key)
    if kept is not None:
        return kept
    policy, shipped = _composed(given)
    cache.write(cache_folder, name, key, marshal.dumps((tuple(policy), shipped)))
    return policy


def _deciding(given: Given) -> list[str]:
    """Everything of `given` on which the result depends; "" stands for a file that is not there."""
    texts = (given.own, given.user, given.project)
    said = [part for text in texts for part in ((text.file, sha256_hex(text.content)) if text else ("", ""))]
    return [given.level, *said, given.home, given.workspace, shipped_folder()]


def _composed(given: Given) -> tuple[Policy, tuple[tuple[str, str], ...]]:
    """The policy, and (file, state) of each shipped file that it was made of."""
    from jail.policy.compose import compose

    made = compose(given)
    return made.policy, tuple((text.file, text.state) for text in made.shipped)


def _kept(folder: str, name: str, key: bytes) -> Policy | None:
    """The policy kept under `name` for `key`, or None for any reason whatever."""
    body = cache.read(folder, name, key)
    if body is None:
        return None
    try:
        found = marshal.loads(body)  # noqa: S302 - the cache gives only what we wrote, by owner and digest
    except (EOFError, ValueError, TypeError):
        return None
    if type(found) is not tuple or len(found) != 2:
        return None
    fields, shipped = found
    if not (_fits(fields) and _are_pairs(shipped)):
        return None
    if any(sources.state(file) != state for file, state in shipped):
        return None
    return Policy._make(fields)


def _are_pairs(field: object) -> bool:
    return type(field) is tuple and all(
        type(pair) is tuple and [type(part) for part in pair] == [str, str] for pair in field
    )


def _fits(fields: object) -> bool:
    """Whether `fields` are those of a Policy, each of its type."""
    kinds = (
        *("text",) * 2,
        *("texts",) * 6,
        bool,
        "texts",
        "pairs",
        *("texts",) * 2,
        *(int,) * 6,
        float,
        "texts",
        "pairs",
        "pairs",
    )
    if not isinstance(fields, tuple) or len(fields) != len(kinds):
        return False
    for kind, field in zip(kinds, fields, strict=True):
        if kind == "text":
            fits = type(field) is str
        elif kind == "texts":
            fits = type(field) is tuple and all(type(text) is str for text in field)
        elif kind == "pairs":
            fits = _are_pairs(field)
        else:
            fits = type(field) is kind
        if not fits:
            return False
    return True
