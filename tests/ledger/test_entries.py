import json
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jail.errors import JailError
from jail.kernel.digest import sha256_hex as digest
from jail.ledger.entries import (
    CUT_CHARACTERS,
    DEPTH_LIMIT,
    FIELDS_LIMIT,
    KINDS,
    STRING_LIMIT,
    encode,
    fields_json,
)

SPELLINGS: list[tuple[object, str]] = [
    (None, "null"),
    (True, "true"),
    (False, "false"),
    (0, "0"),
    (-(2**63) + 1, "-9223372036854775807"),
    (1764512102.123456, "1764512102.123456"),
    (1e100, "1e+100"),
    (-0.0, "-0.0"),
    ("", '""'),
    ('"\\/', '"\\"\\\\/"'),
    ("\x00\x1b\x7f\n", '"\\u0000\\u001b\\u007f\\n"'),
    ("é\u202e\U0001f600", '"\\u00e9\\u202e\\ud83d\\ude00"'),
    ("\udc80\udcff", '"\\udc80\\udcff"'),
    ("\ud83d\udc80", '"\\ufffd\\udc80"'),
    ("\ude00", '"\\ufffd"'),
    ([], "[]"),
    ((1, "a", [None]), '[1,"a",[null]]'),
    ({"b": 1, "a": {"é": 2}}, '{"a":{"\\u00e9":2},"b":1}'),
]


@pytest.mark.parametrize(("value", "spelling"), SPELLINGS, ids=[repr(value) for value, _ in SPELLINGS])
def test_each_value_has_one_spelling(value: object, spelling: str) -> None:
    assert encode(value) == spelling


def cycle() -> list[object]:
    found: list[object] = []
    found.append(found)
    return found


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        -float("inf"),
        2**63,
        -(2**63),
        b"bytes",
        {1},
        ...,
        {1: 2},
        {"cut": 1},
        cycle(),
    ],
    ids=repr,
)
def test_what_has_no_spelling_is_our_defect(value: object) -> None:
    with pytest.raises(JailError, match="defect in jail"):
        encode(value)


def test_nesting_is_bounded_and_the_bound_itself_passes() -> None:
    deepest: object = 1
    for _ in range(DEPTH_LIMIT):
        deepest = [deepest]
    assert encode(deepest) == "[" * DEPTH_LIMIT + "1" + "]" * DEPTH_LIMIT
    with pytest.raises(JailError, match="nested"):
        encode([deepest])


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
keys = st.text().filter(lambda key: not key.startswith("cut"))
values = scalars | st.lists(scalars | st.lists(scalars)) | st.dictionaries(keys, scalars)


@given(values)
def test_spelling_is_what_json_itself_would_write(value: object) -> None:
    assert encode(value) == json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


@given(st.binary())
def test_a_file_name_of_any_bytes_comes_back(raw: bytes) -> None:
    spelled = encode(os.fsdecode(raw))
    assert spelled.isascii()
    assert spelled.isprintable()
    assert os.fsencode(json.loads(spelled)) == raw


def test_a_kind_that_is_not_in_the_table_is_our_defect() -> None:
    with pytest.raises(JailError, match="no entry of kind 'execs'"):
        fields_json("execs", {})


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_wants_its_fields_and_no_other(kind: str) -> None:
    required = dict.fromkeys(KINDS[kind].required)
    assert json.loads(fields_json(kind, required)) == required
    for name in required:
        fewer = {other: None for other in required if other != name}
        with pytest.raises(JailError, match=f"missing fields \\['{name}'\\]"):
            fields_json(kind, fewer)
    with pytest.raises(JailError, match="unknown fields \\['oops'\\]"):
        fields_json(kind, {**required, "oops": 1})
    everything = {**required, **dict.fromkeys(KINDS[kind].optional)}
    assert json.loads(fields_json(kind, everything)) == everything


def test_a_string_at_the_limit_is_kept_and_one_above_is_cut_with_digest_and_length() -> None:
    kept = "x" * STRING_LIMIT
    assert json.loads(fields_json("note", {"text": kept})) == {"text": kept}
    for above in (kept + "y", "é" * (STRING_LIMIT // 2 + 1), "\udc80" * (STRING_LIMIT + 1)):
        raw = os.fsencode(above)
        cut = {"bytes": len(raw), "cut": above[:CUT_CHARACTERS], "sha256": digest(raw)}
        assert json.loads(fields_json("note", {"text": above})) == {"text": cut}


def test_a_cut_string_cannot_be_mistaken_for_what_a_program_said() -> None:
    posing = '{"bytes":1,"cut":"x","sha256":"00"}'
    assert json.loads(fields_json("note", {"text": posing}))["text"] == posing


@pytest.mark.parametrize(
    "command",
    [["x" * 1000] * 2000, ["\x00" * STRING_LIMIT] * 2, [[]] * 200_000, "\x00" * STRING_LIMIT],
    ids=["many words", "escapes", "empty lists", "one string of escapes"],
)
def test_fields_above_the_limit_lose_their_longest_first(command: Any) -> None:
    fields: dict[str, object] = {
        **dict.fromkeys(KINDS["start"].required),
        "command": command,
        "plan": "short",
    }
    text = fields_json("start", fields)
    whole = encode(command)
    assert len(text) <= FIELDS_LIMIT
    found = json.loads(text)
    assert found["plan"] == "short"
    assert found["command"] == {
        "bytes": len(whole),
        "cut_json": whole[:CUT_CHARACTERS],
        "sha256": digest(whole.encode("ascii")),
    }


def test_an_entry_of_nothing_but_huge_fields_still_fits() -> None:
    huge = dict.fromkeys(KINDS["start"].required, ["\x00" * 60_000] * 5)
    assert len(fields_json("start", huge)) <= FIELDS_LIMIT
