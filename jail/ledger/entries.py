r"""What an entry may say, and its one spelling in bytes.

Rule: `KINDS` is the only list of kinds; a kind or a field that it does not name is a defect of the caller,
found at the append and not by the reader of a report. The same entry is always the same bytes (keys sorted by
code point, no spaces, ASCII), since the chain hashes bytes. No `json` here: it imports `re`, and this is on
the launch path; only its C escape is used.

Strings. A name that is not UTF-8 arrives as os.fsdecode gives it, each odd byte a lone surrogate
U+DC80..U+DCFF (PEP 383). It is written as `\udc80`..`\udcff`, comes back from json.loads as it was, and
os.fsencode gives the first bytes again. Any other lone surrogate stands for no byte, and a JSON reader would
join it with its neighbour to a character that never was: it becomes U+FFFD. Control characters, DEL and
everything past ASCII are escapes, so printing a raw line cannot steer a terminal.

Sizes. A string above STRING_LIMIT becomes an object {"bytes": length in UTF-8, "cut": its beginning,
"sha256": of the whole}. If the fields together are still above FIELDS_LIMIT, the longest field becomes
{"bytes", "cut_json": the beginning of its JSON text, "sha256": of the whole JSON text}, then the next one.
What a program says is always a JSON string, so it cannot pose as such an object.
"""

from _json import encode_basestring_ascii

from jail.errors import bug
from jail.kernel.digest import sha256_hex as digest
from jail.light import Final, Mapping, NamedTuple

ENTRY_LIMIT: Final = 256 * 1024
"""Bytes of one line, without its newline. A reader holds one line at a time, so this bounds its memory; it is
four times the longest plan that we expect, and one write(2) to a regular file takes it whole."""
FIELDS_LIMIT: Final = ENTRY_LIMIT - 1024
"""Bytes of the fields in a line; the rest (seq, time, kind, hashes) has a known small size."""
STRING_LIMIT: Final = 64 * 1024
"""UTF-8 bytes of one string: a plan fits, a path fits (PATH_MAX is 4096); of a longer argument the beginning
says enough."""
CUT_CHARACTERS: Final = 1024
"""How much is kept of what is cut: enough to recognise it, and every field of an entry cut is still far below
ENTRY_LIMIT."""
DEPTH_LIMIT: Final = 4
"""Containers within containers. Deeper is not written by us; without a limit a cycle would recurse for
ever."""
NUMBER_LIMIT: Final = 1 << 63
"""Integers are below this in size, as the kernel's are, so that any JSON reader with 64 bits reads them."""

JAIL: Final = "jail"
"""jail did it, or saw it itself."""
KERNEL: Final = "kernel"
"""The kernel answered it: a wait status, an accounting figure, the errno of a probe."""


class Kind(NamedTuple):
    """Who vouches for the fields of an entry, which it must have and which it may have."""

    vouches: str
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()


_MOUNT: Final = Kind(JAIL, ("path", "digest_before", "digest_after", "window_s"))
_REVIEWED: Final = Kind(
    JAIL,
    ("path", "what", "tier", "reason", "digest_before", "digest_after"),
    ("source", "mode_before", "mode_after", "kind_before", "kind_after", "apply"),
)

KINDS: Final[dict[str, Kind]] = {
    "start": Kind(
        JAIL,
        (
            "session",
            "plan",
            "policy",
            "policy_digest",
            "policy_sources",
            "versions",
            "losses",
            "command",
            "workspace",
            "pid",
        ),
        ("held", "resumed"),
    ),
    "probes": Kind(KERNEL, ("results",)),
    "running": Kind(JAIL, (), ("pid",)),
    "lost": _MOUNT,
    "restored": _MOUNT,
    "swept": Kind(JAIL, ("path", "kind", "digest", "moved_to", "why_not")),
    "changed": Kind(JAIL, ("path", "kind", "digest"), ("tier",)),
    "limit": Kind(JAIL, ("which",), ("detail",)),
    "note": Kind(JAIL, ("text",)),
    "joined": Kind(JAIL, ("join", "command", "pid", "probes_held", "terminal")),
    "left": Kind(KERNEL, ("join", "exit", "signal", "reason")),
    "stopped": Kind(JAIL, ("grace_s",)),
    "held": Kind(
        JAIL, ("changes", "tiers", "letters", "conflicts"), ("digest", "delivered", "delivered_warned")
    ),
    "end": Kind(KERNEL, ("exit", "reason", "signal", "duration_s", "cpu_s", "peak_bytes")),
    "applying": Kind(JAIL, ("apply", "becomes", "changes", "digest")),
    "applied": _REVIEWED,
    "delivered": _REVIEWED,
    "discarded": _REVIEWED,
    "refused": _REVIEWED,
    "settled": Kind(JAIL, ("apply", "outcome", "applied", "refused")),
    "resumed": Kind(JAIL, ("by",)),
}
"""kind → who vouches, fields. What is not known is None, never left out: `moved_to` of a thing that could not
be moved, `digest_after` of a mount that is still lost, `exit` of a joined command that the end of the session
took along. `join` tells which `left` belongs to which `joined`; `pid` is as it is seen inside. `end.reason`
is jail's word for why it ended; the figures beside it are the kernel's. Of the
review: `path` is that of the host; `what`, `tier` and `reason` are of jail.hold.change; before is how the run
found it, after is how the session has it; `by`: the session that took what this one held.
`applying` comes before an apply touches the host, `settled` when all of it is said; `apply` is its id, in the
entries of its paths too; `becomes`: their kind; `digest`: of the list of its paths, with their digests.
"""
REVIEW_KINDS: Final = frozenset(
    ["applying", "applied", "delivered", "discarded", "refused", "settled", "resumed"]
)
"""Those of the review ledger, which has notes too; all others are of a run's."""

START: Final = "start"
END: Final = "end"
RESUMED: Final = "resumed"
APPLYING: Final = "applying"
SETTLED: Final = "settled"
_CUT_NAMES: Final = frozenset(("cut", "cut_json"))


def fields_json(kind: str, fields: Mapping[str, object]) -> str:
    """The fields of an entry as canonical JSON, at most FIELDS_LIMIT bytes (see Sizes above).

    Raises JailError (our defect) on an unknown kind, a missing or unknown field, or a value that has no
    spelling.
    """
    _check(kind, fields)
    parts = {name: encode(value, STRING_LIMIT) for name, value in fields.items()}
    whole = set(parts)
    while sum(len(name) + len(part) + 4 for name, part in parts.items()) + 2 > FIELDS_LIMIT:
        longest = max(whole, key=lambda name: len(parts[name]))
        whole.remove(longest)
        text = encode(fields[longest])
        parts[longest] = _cut("cut_json", text[:CUT_CHARACTERS], text.encode("ascii"))
    return _object(parts)


def encode(value: object, string_limit: int = 0) -> str:
    """`value` (None, bool, int, float, str, list, tuple, dict) as canonical JSON; strings above
    `string_limit` bytes are cut (0: none).
    """
    return _encode(value, string_limit, DEPTH_LIMIT)


def _check(kind: str, fields: Mapping[str, object]) -> None:
    known = KINDS.get(kind)
    if known is None:
        raise bug(f"the ledger has no entry of kind {kind!r}")
    missing = [name for name in known.required if name not in fields]
    unknown = [name for name in fields if name not in known.required and name not in known.optional]
    if missing or unknown:
        raise bug(f"ledger entry {kind!r}: missing fields {missing}, unknown fields {unknown}")


def _encode(value: object, string_limit: int, depth: int) -> str:
    if isinstance(value, str):
        return _string(value, string_limit)
    if value is None or value is True or value is False:
        return _CONSTANTS[value]
    if isinstance(value, int):
        if abs(value) >= NUMBER_LIMIT:
            raise bug("a ledger entry holds an integer of more than 63 bits")
        return int.__repr__(value)
    if isinstance(value, float):
        if value - value != 0.0:
            raise bug("a ledger entry holds a number that is not finite")
        return float.__repr__(value)
    if depth == 0:
        raise bug(f"a ledger entry is nested more than {DEPTH_LIMIT} deep")
    if isinstance(value, list | tuple):
        return "[" + ",".join([_encode(item, string_limit, depth - 1) for item in value]) + "]"
    if isinstance(value, dict):
        return _object({_key(name): _encode(item, string_limit, depth - 1) for name, item in value.items()})
    raise bug(f"a ledger entry holds a {type(value).__name__}")


_CONSTANTS: Final[dict[object, str]] = {None: "null", True: "true", False: "false"}


def _object(parts: Mapping[str, str]) -> str:
    return "{" + ",".join([f"{encode_basestring_ascii(name)}:{parts[name]}" for name in sorted(parts)]) + "}"


def _key(name: object) -> str:
    if not isinstance(name, str):
        raise bug("a ledger entry has a key that is not a string")
    if name in _CUT_NAMES:
        raise bug(f"a ledger entry has the key {name!r}, which marks what was cut")
    return _bytes_or_mark(name)


def _string(text: str, limit: int) -> str:
    text = _bytes_or_mark(text)
    if limit and len(text) * 4 > limit:
        raw = text.encode("utf-8", "surrogateescape")
        if len(raw) > limit:
            return _cut("cut", text[:CUT_CHARACTERS], raw)
    return encode_basestring_ascii(text)


def _cut(mark: str, beginning: str, whole: bytes) -> str:
    size, of = str(len(whole)), f'"{digest(whole)}"'
    return _object({"bytes": size, mark: encode_basestring_ascii(beginning), "sha256": of})


def _bytes_or_mark(text: str) -> str:
    """`text` with every surrogate that PEP 383 does not use replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return "".join(["\ufffd" if _names_no_byte(char) else char for char in text])
    return text


def _names_no_byte(char: str) -> bool:
    return "\ud800" <= char <= "\udfff" and not "\udc80" <= char <= "\udcff"
