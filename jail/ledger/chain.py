r"""The chain: how a line of the ledger names the line before it, and itself.

Rule: pure functions from values to bytes; no clock, no file. A line is one canonical JSON object:

    {"fields":{…},"kind":"start","prev":"…","seq":0,"time":1764512102.5,"vouches":"jail","whole":"…"}

`prev` is the SHA-256 of the line before, without its newline (`sed -n 1p ledger.jsonl | tr -d '\n' |
sha256sum` gives it); for the first line it is that of the session's id (with the ledger's
name, where that is not the run's). `whole` is the SHA-256 of the line as it is without `whole`: no later line
vouches for the last one, so in a copy of the file alone its `"exit":1` could else become 0 unseen. Neither
has a key: they show damage and careless hands. Whoever may write the folder can make a new chain; against
that stands only that nothing inside a jail can reach it.
"""

from jail.kernel.digest import sha256_hex as digest
from jail.ledger.entries import KINDS, encode, fields_json
from jail.light import Final, Mapping

_TAIL_BYTES: Final = len(',"whole":"') + 64 + len('"}')


def first(session: str, of: str = "") -> str:
    """`prev` of the first line of `session`; `of` says which of its ledgers, "" for that of the run."""
    return digest(f"{session} {of}".rstrip(" ").encode("utf-8", "surrogateescape"))


def line(seq: int, when: float, kind: str, fields: Mapping[str, object], prev: str) -> bytes:
    """The line of an entry without its newline, at most entries.ENTRY_LIMIT bytes.

    `when` is in seconds since the epoch, UTC. Raises JailError (our defect) as entries.fields_json does.
    """
    content = fields_json(kind, fields)
    body = (
        f'{{"fields":{content},"kind":{encode(kind)},"prev":"{prev}","seq":{seq},'
        f'"time":{encode(when)},"vouches":"{KINDS[kind].vouches}"'
    )
    return f'{body},"whole":"{digest((body + "}").encode("ascii"))}"}}'.encode("ascii")


def sealed(raw: bytes) -> bool:
    """Whether the last field of a line is the hash of the rest, as `line` writes it. Takes any bytes."""
    body, tail = raw[:-_TAIL_BYTES], raw[-_TAIL_BYTES:]
    return tail == f',"whole":"{digest(body + b"}")}"}}'.encode("ascii")


def head(session: str, seq: int, last: str, of: str = "") -> bytes:
    """The content of a head file: the number and the hash of a ledger's last line; `of` as in `first`."""
    return encode(_mark(session, seq, last, of)).encode("ascii") + b"\n"


def record(session: str, seq: int, last: str, when: float, of: str = "") -> bytes:
    """A line of the index of sessions: at `when`, the last line of this ledger was number `seq` with this
    hash.
    """
    return encode({**_mark(session, seq, last, of), "time": when}).encode("ascii") + b"\n"


def _mark(session: str, seq: int, last: str, of: str) -> dict[str, object]:
    which = {"ledger": of} if of else {}
    return {"hash": last, "seq": seq, "session": session, **which}


def removal(session: str, when: float) -> bytes:
    """A line of the index of sessions: at `when`, `jail gc` removed the folder of `session`."""
    return encode({"removed": True, "session": session, "time": when}).encode("ascii") + b"\n"
