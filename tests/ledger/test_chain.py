import hashlib
import json

from hypothesis import given
from hypothesis import strategies as st

from jail.ledger import chain
from jail.ledger.entries import ENTRY_LIMIT, KINDS

SESSION = "20261130-141502-k3f9x2ab"


def test_the_line_of_a_note_is_these_bytes() -> None:
    raw = chain.line(3, 1764512102.5, "note", {"text": "é"}, "00" * 32)
    prev = "00" * 32
    body = f'{{"fields":{{"text":"\\u00e9"}},"kind":"note","prev":"{prev}","seq":3,"time":1764512102.5'
    body += ',"vouches":"jail"'
    whole = hashlib.sha256((body + "}").encode()).hexdigest()
    assert raw == f'{body},"whole":"{whole}"}}'.encode()


def test_a_line_is_canonical_json_with_sorted_keys() -> None:
    raw = chain.line(0, 1.0, "end", dict.fromkeys(KINDS["end"].required), chain.first(SESSION))
    found = json.loads(raw)
    assert raw == json.dumps(found, sort_keys=True, separators=(",", ":")).encode()
    assert found["vouches"] == "kernel"
    assert found["prev"] == hashlib.sha256(SESSION.encode()).hexdigest()


def test_the_longest_line_stays_below_the_limit() -> None:
    huge = dict.fromkeys(KINDS["start"].required, "\x00" * 200_000)
    assert len(chain.line(2**63 - 1, 1764512102.123456, "start", huge, "00" * 32)) <= ENTRY_LIMIT


@given(st.text(), st.data())
def test_a_line_is_sealed_and_no_single_byte_of_it_can_change(text: str, data: st.DataObject) -> None:
    raw = chain.line(1, 2.0, "note", {"text": text}, "11" * 32)
    assert chain.sealed(raw)
    at = data.draw(st.integers(0, len(raw) - 1))
    other = data.draw(st.integers(1, 255))
    assert not chain.sealed(raw[:at] + bytes([raw[at] ^ other]) + raw[at + 1 :])


@given(st.binary(max_size=200))
def test_bytes_of_others_are_not_sealed(raw: bytes) -> None:
    assert not chain.sealed(raw)


def test_head_and_record_are_canonical_lines() -> None:
    assert chain.head(SESSION, 4, "ab") == b'{"hash":"ab","seq":4,"session":"' + SESSION.encode() + b'"}\n'
    record = chain.record(SESSION, 4, "ab", 1.5)
    assert record == b'{"hash":"ab","seq":4,"session":"' + SESSION.encode() + b'","time":1.5}\n'
