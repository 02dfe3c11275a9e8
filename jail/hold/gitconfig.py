"""Git configuration files read without git, and the question whether one holds nothing that runs a program.

Rule: a file from a repository is data, so it is read by this grammar and by nothing that could obey it. The
grammar is git's own (config.c, git_parse_source; git-config(1), "Syntax"); tests compare both on generated
files. What does not parse is an error, never a guess: the caller then trusts nothing. Bytes are read as
latin-1, so that every file is text.
"""

from jail.light import Callable, Final, Iterator, NamedTuple

CONFIG_BYTES: Final = 1 << 20
"""A configuration file that is longer is not read: real ones have a few hundred lines."""
PLAIN_BYTES: Final = 1 << 16
"""The same for one that was made during the run."""

_SPACE: Final = " \t\n\r"
"""isspace of git (ctype.c): vertical tab and form feed are not."""
_KEY: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")
_ESCAPES: Final = {"t": "\t", "b": "\b", "n": "\n", "\\": "\\", '"': '"', "\n": ""}


class Setting(NamedTuple):
    """One line: `key` is section and name in lower case ("branch.merge"), `subsection` as written.

    `value` is None for a bare name.
    """

    key: str
    subsection: str
    value: str | None


class ConfigError(ValueError):
    """A file that git would not read either, or that is too long."""


def parse(content: bytes, limit: int = CONFIG_BYTES) -> tuple[Setting, ...]:
    """The settings of a file in their order. Raises ConfigError."""
    if len(content) > limit:
        raise ConfigError(f"longer than {limit} bytes")
    # Nobody's configuration has a NUL; git reads "\r\n" as "\n" wherever it stands (config.c, get_next_char).
    if b"\0" in content:
        raise ConfigError("a NUL byte")
    text = content.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").decode("latin-1")
    # The end of the file counts as line ends; a value that goes on to the next line needs the second.
    return tuple(_settings(text + "\n\n"))


def _settings(text: str) -> Iterator[Setting]:
    section, subsection = "", ""
    at = 0
    while at < len(text):
        char = text[at]
        if char in _SPACE:
            at += 1
        elif char in "#;":
            at = text.index("\n", at)
        elif char == "[":
            section, subsection, at = _header(text, at + 1)
        elif char.isascii() and char.isalpha():
            if not section:
                raise ConfigError("a name before any section")
            name, value, at = _assignment(text, at)
            yield Setting(f"{section}.{name}", subsection, value)
        else:
            raise ConfigError(f"line {_line(text, at)}")


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _header(text: str, at: int) -> tuple[str, str, int]:
    start = at
    while text[at] in _KEY or text[at] == ".":
        at += 1
    section = text[start:at].lower()
    if not section:
        raise ConfigError(f"section in line {_line(text, at)}")
    if text[at] == "]":
        # The old form [section.sub]: its subsection is in lower case.
        head, _, tail = section.partition(".")
        return head, tail, at + 1
    end = at
    while text[at] in " \t\r":
        at += 1
    if text[at] != '"' or at == end:
        raise ConfigError(f"section in line {_line(text, at)}")
    subsection, at = _quoted(text, at + 1)
    if text[at] != "]":
        raise ConfigError(f"section in line {_line(text, at)}")
    head, _, tail = section.partition(".")
    return head, f"{tail}.{subsection}" if tail else subsection, at + 1


def _quoted(text: str, at: int) -> tuple[str, int]:
    read: list[str] = []
    while text[at] != '"':
        if text[at] == "\\":
            at += 1
        if text[at] == "\n":
            raise ConfigError(f"section in line {_line(text, at)}")
        read.append(text[at])
        at += 1
    return "".join(read), at + 1


def _assignment(text: str, at: int) -> tuple[str, str | None, int]:
    start = at
    while text[at] in _KEY:
        at += 1
    name = text[start:at].lower()
    while text[at] in " \t":
        at += 1
    if text[at] == "\n":
        return name, None, at
    if text[at] != "=":
        raise ConfigError(f"line {_line(text, at)}")
    value, at = _value(text, at + 1)
    return name, value, at


def _value(text: str, at: int) -> tuple[str, int]:
    read: list[str] = []
    keep = 0
    quoted = False
    while True:
        char = text[at]
        if char == "\n":
            if quoted:
                raise ConfigError(f"value in line {_line(text, at)}")
            return "".join(read[:keep]), at
        if char in _SPACE and not quoted:
            if read:
                read.append(char)
            at += 1
            continue
        if char in "#;" and not quoted:
            at = text.index("\n", at)
            continue
        at += 1
        if char == "\\":
            char, at = text[at], at + 1
            if char not in _ESCAPES:
                raise ConfigError(f"value in line {_line(text, at - 1)}")
            read += _ESCAPES[char]
        elif char == '"':
            quoted = not quoted
        else:
            read.append(char)
        keep = len(read)


_BOOLEAN: Final = frozenset(["true", "false", "0", "1", "yes", "no", "on", "off"])
_PLAIN: Final[dict[str, frozenset[str] | None]] = {
    "core.repositoryformatversion": frozenset("01"),
    "core.filemode": _BOOLEAN,
    "core.bare": _BOOLEAN,
    "core.logallrefupdates": _BOOLEAN | {"always"},
    "core.ignorecase": _BOOLEAN,
    "core.precomposeunicode": _BOOLEAN,
    "core.symlinks": _BOOLEAN,
    "extensions.objectformat": frozenset(["sha1", "sha256"]),
    "extensions.refstorage": frozenset(["files", "reftable"]),
    "init.defaultbranch": None,
    "user.name": None,
    "user.email": None,
    "branch.remote": None,
    "branch.merge": None,
    "branch.rebase": _BOOLEAN,
    "branch.pushremote": None,
    "branch.description": None,
    "remote.url": None,
    "remote.fetch": None,
    "submodule.url": None,
    "submodule.active": None,
}
_SCHEMES: Final = frozenset("https http ssh git git+ssh ssh+git file".split())
"""The URLs that git itself reads; for any other it runs `git-remote-SCHEME` (gitremote-helpers(7))."""
"""The keys of a repository made inside that stays: none makes git run anything. Each with its values, None
for any.
"""


def as_text(latin: str) -> str:
    """A value or subsection as text; what is no UTF-8 becomes surrogates, which are not printable."""
    return latin.encode("latin-1").decode("utf-8", "surrogateescape")


def is_plain_url(text: str) -> bool:
    """Whether git itself goes there, through no helper program, and takes it for no option."""
    scheme, is_there, rest = text.partition("://")
    if not text.isprintable() or text.startswith("-") or "::" in text:
        return False
    return not is_there or (scheme in _SCHEMES and not rest.startswith("-"))


def offences(content: bytes, is_fine: Callable[[Setting], bool] | None = None) -> tuple[str, ...]:
    """What a configuration made inside holds beyond the plain keys, and those of which `is_fine` says so:
    keys, as git prints them, or why it is not plain text.

    Stricter than git: no backslash and no control character, so that no reading of ours and of git's could
    differ. A URL or remote that names a helper program (`ext::…`, gitremote-helpers(7)) or begins as an
    option is not plain.
    """
    if len(content) > PLAIN_BYTES:
        return (f"longer than {PLAIN_BYTES} bytes",)
    if b"\\" in content or any(byte < 0x20 and byte not in b"\t\n" for byte in content):
        return ("a backslash or control character",)
    try:
        settings = parse(content)
    except ConfigError as error:
        return (str(error),)
    return tuple(
        _shown(setting)
        for setting in settings
        if not (_is_plain(setting) or (is_fine is not None and is_fine(setting)))
    )


def _is_plain(setting: Setting) -> bool:
    if setting.value is None or setting.key not in _PLAIN:
        return False
    named = setting.key.partition(".")[0] in ("branch", "remote", "submodule")
    # `git clone --recurse-submodules` sets submodule.active for all of them.
    if named != bool(setting.subsection) and setting.key != "submodule.active":
        return False
    if setting.key in ("remote.url", "branch.remote", "branch.pushremote", "submodule.url"):
        return is_plain_url(as_text(setting.value))
    values = _PLAIN[setting.key]
    return values is None or setting.value.lower() in values


def _shown(setting: Setting) -> str:
    section, _, name = setting.key.partition(".")
    return f"{section}.{setting.subsection}.{name}" if setting.subsection else setting.key
