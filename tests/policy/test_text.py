"""A policy as `jail policy show` prints it: each value with its origin."""

import json

import pytest

from jail.cli.options import OPTIONS
from jail.policy.draft import KEYS
from jail.policy.flags import CHANGES, with_flags
from jail.policy.shape import shown
from jail.policy.text import flagged, lines, values
from support.composed import LEVELS, made

USER = 'base = "ci"\n[files]\nread = ["~/data"]\n[environment.set]\nDEBUG = "1"\n'
MADE = made(user=USER, project='[limits]\ntmp = "1 MiB"\n[files]\nhide = [".env"]\n')
FLAGGED = MADE.policy._replace(
    write=("/srv/out",),
    pass_names=(*MADE.policy.pass_names, "NEW"),
    timeout=60.0,
    hide=(*MADE.policy.hide, "/x"),
    hold=(".", "/srv/lib"),
)


def shown_lines(key: str) -> list[str]:
    """The lines of one key, in columns."""
    found: list[str] = []
    for line in lines(MADE, FLAGGED):
        if line.startswith(f"{key} ") or (found and line.startswith("  ")):
            found.append(line)
        elif found:
            break
    return [
        " | ".join(part.strip() for part in line.removeprefix(key).split("  ") if part.strip())
        for line in found
    ]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("files.write", ["/srv/out | flag --write"]),
        ("files.hold", [". | flag --hold", "/srv/lib | flag --hold-path"]),
        ("hold.deliver", ["nothing"]),
        ("files.read", ["~/data | your file, policy.toml"]),
        ("files.hide", [".env | project, .jail.toml", "/x | flag --hide"]),
        ("limits.timeout", ["1m | flag --timeout"]),
        ("limits.tmp", ["1 MiB | project, .jail.toml"]),
        ("limits.memory", ["6 GiB | level ci"]),
        ("terminal.allow", ["nothing"]),
        ("toolchains.gpu", ["false | level ci"]),
        (
            "environment.set",
            [
                'DEBUG = "1" | your file, policy.toml',
                'PIP_RETRIES = "0" | part unconnected',
                'npm_config_fetch_retries = "0" | part unconnected',
            ],
        ),
    ],
)
def test_each_value_stands_beside_its_origin(key: str, expected: list[str]) -> None:
    assert shown_lines(key) == expected


@pytest.mark.parametrize("level", LEVELS)
def test_every_key_is_shown_in_the_order_of_a_file_and_in_columns(level: str) -> None:
    composed = made(level)
    found = lines(composed, composed.policy)
    keys = [shown(path) for field, path in KEYS.items() if field not in ("name", "description")]
    assert [line.split(" ")[0] for line in found if line.split(" ")[0] in keys] == keys
    body = found[found.index("") + 1 :]
    starts = {len(line) - len(line[22:].lstrip()) for line in body}
    assert starts == {22}
    assert composed.policy.digest in " ".join(found)
    assert all(file in " ".join(found) for file, _ in composed.policy.sources)


def test_json_has_every_value_with_its_file_and_key() -> None:
    found = json.loads(json.dumps(values(MADE, FLAGGED)))
    assert set(found["values"]) == {shown(path) for path in KEYS.values()}
    assert found["level"] == "ci"
    [size] = found["values"]["limits.tmp"]
    assert (size["value"], size["who"], size["key"]) == (1 << 20, "project", "limits.tmp")
    assert size["file"].endswith("/.jail.toml")
    assert found["values"]["environment.set"][0]["value"] == ["DEBUG", "1"]
    assert [source["sha256"] for source in found["sources"]] == [digest for _, digest in FLAGGED.sources]


def test_without_flags_no_value_comes_from_one() -> None:
    draft = flagged(MADE.draft, MADE.policy)
    assert not [item for items in draft.values() for item in items if item.origin.who.startswith("flag")]


def test_what_nobody_wrote_is_built_in() -> None:
    composed = made(own='name = "x"')
    assert "limits.memory         2 GiB                               built in" in lines(
        composed, composed.policy
    )


TRIED = {
    "write": ("/w",),
    "hold": True,
    "hold_path": ("/c",),
    "read": ("/r",),
    "hide": ("/h",),
    "env": ("A", "B=1"),
    "timeout": "7m",
    "gpu": True,
}
"""Option → a value that changes every field that it can change."""


def test_every_option_that_changes_a_policy_is_the_origin_of_what_it_changes() -> None:
    of_others = {"policy", "workspace", "resume", "status_file", "json"}
    assert {option.name for option in OPTIONS} - of_others == set(CHANGES) == set(TRIED)
    for option, given in TRIED.items():
        policy = with_flags(MADE.policy, **{option: given}, home="/home/ada", cwd="/")  # type: ignore[arg-type]
        changed = {field for field in KEYS if getattr(policy, field) != getattr(MADE.policy, field)}
        assert changed == set(CHANGES[option])
        draft = flagged(MADE.draft, policy)
        origins = {
            item.origin.who for field in changed for item in draft[field] if item not in MADE.draft[field]
        }
        assert origins == {f"flag --{option.replace('_', '-')}"}


def test_a_policy_without_a_description_has_its_label() -> None:
    composed = made(own='name = "x"')
    assert lines(composed, composed.policy)[0].split() == ["policy", "x"]
