"""Which settings of a held git config a person may take over, and how they come into the host's own.

Rule: what the command wrote is never put in the place of the host's file. It is read and compared, key by
key, with what was there when the run began. A key that the table has, with a plain value, may be set in the
host's *current* file; every other key is refused by name, whatever its value. What git wrote is read again,
and must be what was meant. The keys of the table change where git fetches from and pushes to, which a person
sees in the review; they run nothing (git-config(1)).
"""

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from jail.errors import JailError
from jail.hold import gitconfig, hostgit

VALUE_CHARACTERS: Final = 8192
"""A setting that is longer is not plain; git itself bounds names of branches at 255 bytes a component."""
CALLS: Final = 2000
"""How often git is run for one file, some 3 ms each: a person's day changes tens of settings."""
SHOWN_CHARACTERS: Final = 200
_BOOLEAN: Final = frozenset("true false yes no on off 1 0".split())
_REBASE: Final = _BOOLEAN | frozenset("merges m interactive i preserve p".split())
_FETCHED: Final = ("refs/remotes/", "refs/tags/")
"""Where `git fetch` may be told to write: never over branches of the person."""
_NOT_IN_REFS: Final = frozenset(" ~^:?*[\\")
"""git-check-ref-format(1)"""

Values = tuple[str | None, ...]
"""All values of one key in their order; None is a bare name."""


class Offered(NamedTuple):
    """One key that changed and may be taken over: `key` as git prints it, `before` in the base, `after` in
    the copy; () is a key that is not there.
    """

    key: str
    before: Values
    after: Values


class Keys(NamedTuple):
    """What changed in a config: keys that are offered, and those that never arrive, each with the reason
    where it is not the key itself.
    """

    offered: tuple[Offered, ...]
    refused: tuple[str, ...]


_Key = tuple[str, str]
"""Section and name ("branch.merge"), and subsection."""


def compared(base: bytes, new: bytes) -> Keys:
    """What of a config changed. Never raises: of one that cannot be read nothing is offered."""
    try:
        old, now = _grouped(base), _grouped(new)
    except gitconfig.ConfigError as error:
        return Keys((), (f"all of it, as git could not read it either: {error}",))
    offered, refused = [], []
    for key in (*old, *(key for key in now if key not in old)):
        before, after = old.get(key, ()), now.get(key, ())
        if before == after:
            continue
        name, subsection = key
        shown = _shown(key)
        if name not in _OFFERED or not subsection:
            refused.append(_clipped(shown))
        elif not _is_plain(key, after):
            refused.append(f"{_clipped(shown)} (its value is not plain)")
        else:
            offered.append(Offered(shown, before, after))
    return Keys(tuple(offered), tuple(refused))


def conflicts(host: bytes, offered: Iterable[Offered]) -> tuple[Offered, ...]:
    """The keys that the host's file has neither as they were nor as they shall be. Raises ConfigError."""
    now = {_shown(key): values for key, values in _grouped(host).items()}
    return tuple(each for each in offered if now.get(each.key, ()) not in (each.before, each.after))


def merged(host: bytes, offered: Sequence[Offered], folder: str | None = None) -> bytes:
    """The host's file with these keys set, written by the host's git on a copy in `folder` (a folder of our
    own; the system's for temporary files where it is None).

    Raises JailError where the host changed one of the keys to something else meanwhile, where its file cannot
    be read, and where git does not do as told; the caller's file is then as it was.
    """
    try:
        now = {_shown(key): values for key, values in _grouped(host).items()}
        if other := conflicts(host, offered):
            raise _problem(
                f"the host's git config has another value for {_clipped(other[0].key)} by now",
                "set it yourself with `git config`, or discard the change",
            )
        wanted = [each for each in offered if now.get(each.key, ()) != each.after]
        if not wanted:
            return host
        written = _written(host, wanted, folder)
        expected = {**now, **{each.key: each.after for each in wanted}}
        if not _is_as_meant(host, written, expected, {each.key for each in wanted}):
            raise _problem("git wrote something else than it was told to", "set the keys yourself")
        return written
    except gitconfig.ConfigError as error:
        hint = "mend it (git config --list says where), then try again"
        raise _problem(f"a git config cannot be read: {error}", hint) from error
    except OSError as error:
        hint = "see that there is room for temporary files"
        raise _problem(f"git could not be run on a copy: {error.strerror}", hint) from error


def _problem(message: str, hint: str) -> JailError:
    return JailError(message, where="git config of the host, which is unchanged", hint=hint)


def _written(host: bytes, wanted: Sequence[Offered], folder: str | None) -> bytes:
    commands = [command for each in wanted for command in _commands(each)]
    if len(commands) > CALLS:
        raise _problem(f"more than {CALLS} settings changed at once", "set those that you want yourself")
    with tempfile.TemporaryDirectory(dir=folder, prefix="jail-git-config-") as own:
        copy = f"{own}/config"
        with open(copy, "xb") as file:
            file.write(host)
        for command in commands:
            said = hostgit.config(("--file", copy, *(word.encode() for word in command)), {})
            if said is None or said.code:
                why = "there is none, or it took too long" if said is None else f"exit {said.code}"
                raise _problem(f"git could not set {_clipped(command[1])}: {why}", "set it yourself")
        with open(copy, "rb") as file:
            return file.read(gitconfig.CONFIG_BYTES + 1)


def _commands(each: Offered) -> list[tuple[str, ...]]:
    """What git is told for one key; `--` is no word of `git config`, so that no value may begin with "-"."""
    values = [value for value in each.after if value is not None]
    if len(values) == 1 and each.before:
        return [("--replace-all", each.key, values[0])]
    remove = [("--unset-all", each.key)] if each.before else []
    return [*remove, *(("--add", each.key, value) for value in values)]


def _is_as_meant(host: bytes, written: bytes, expected: Mapping[str, Values], changed: set[str]) -> bool:
    """Whether a config has just the values that it should, and the host's other settings in their order."""
    found = {_shown(key): values for key, values in _grouped(written).items()}
    kept = [[each for each in _told(text) if each[0] not in changed] for text in (host, written)]
    return found == {key: values for key, values in expected.items() if values} and kept[0] == kept[1]


def _told(content: bytes) -> list[tuple[str, str | None]]:
    return [
        (_shown((setting.key, gitconfig.as_text(setting.subsection))), setting.value)
        for setting in gitconfig.parse(content)
    ]


def _grouped(content: bytes) -> dict[_Key, Values]:
    """All values by key. Raises ConfigError."""
    found: dict[_Key, list[str | None]] = {}
    for key, subsection, value in gitconfig.parse(content):
        values = found.setdefault((key, gitconfig.as_text(subsection)), [])
        values.append(None if value is None else gitconfig.as_text(value))
    return {key: tuple(values) for key, values in found.items()}


def _shown(key: _Key) -> str:
    section, _, name = key[0].partition(".")
    name = _SPELT.get(key[0], name)
    return f"{section}.{key[1]}.{name}" if key[1] else f"{section}.{name}"


def _clipped(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def _is_plain(key: _Key, values: Values) -> bool:
    name, subsection = key
    named = _is_submodule if name.startswith("submodule.") else _is_ref
    is_value = _OFFERED[name]
    return named(subsection) and all(
        value is not None and 0 < len(value) <= VALUE_CHARACTERS and is_value(value) for value in values
    )


def _is_ref(text: str) -> bool:
    """Whether it may be part of a ref (git-check-ref-format(1)). A remote's name is, so that it is never a
    URL or path of the person's, for which its settings would then count.
    """
    parts = text.split("/")
    return (
        text.isprintable()
        and not text.startswith("-")
        and not _NOT_IN_REFS & frozenset(text)
        and not any(part in ("", "@") or part.startswith(".") or part.endswith(".lock") for part in parts)
        and ".." not in text
        and "@{" not in text
        and not text.endswith(".")
    )


def _is_submodule(text: str) -> bool:
    """Whether git takes it for the name of a submodule (submodule-config.c, check_submodule_name), and a
    person can read it.
    """
    return text.isprintable() and not text.startswith(("-", "/")) and ".." not in text.split("/")


def _is_remote(text: str) -> bool:
    return text == "." or gitconfig.is_plain_url(text)


def _is_refspec(text: str) -> bool:
    source, colon, target = text.removeprefix("+").removeprefix("^").partition(":")
    if not text.isprintable() or " " in text or ".." in text or source.startswith("-"):
        return False
    return not colon or not target or target.startswith(_FETCHED)


def _is_description(text: str) -> bool:
    """`git branch --edit-description` writes lines."""
    return not text.startswith("-") and text.replace("\n", " ").replace("\t", " ").isprintable()


_OFFERED: Final[Mapping[str, Callable[[str], bool]]] = {
    "branch.remote": _is_remote,
    "branch.merge": _is_ref,
    "branch.rebase": lambda text: text.lower() in _REBASE,
    "branch.pushremote": _is_remote,
    "branch.description": _is_description,
    "remote.url": gitconfig.is_plain_url,
    "remote.fetch": _is_refspec,
    "submodule.url": gitconfig.is_plain_url,
    "submodule.active": lambda text: text.lower() in _BOOLEAN,
}
"""The keys that may be taken over → whether a value is plain."""
_SPELT: Final = {"branch.pushremote": "pushRemote"}
