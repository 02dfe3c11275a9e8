"""What is told of a manager's settings: known keys with plain values, and never a secret in whatever form."""

import tomllib
from pathlib import Path

import pytest

from jail.launch import settings
from jail.launch.managers import MANAGERS

MISE = ".config/mise/config.toml"

ROWS: list[tuple[str, str, str, tuple[str, ...]]] = [
    (".tool-versions", "node  20.1.0\npython 3.12 3.11 # x\n\n# y\n", "node 20.1.0\npython 3.12 3.11\n", ()),
    (".tool-versions", "node 20\nurl https://me:pw@host/\n", "node 20\n", ("line 2",)),
    (".tool-versions", f"node {'x' * 65}", "", ("line 1",)),
    (
        ".asdfrc",
        "legacy_version_file = yes\nconcurrency=4",
        "legacy_version_file = yes\nconcurrency = 4\n",
        (),
    ),
    (".asdfrc", "pre_asdf_install = curl x\nuse_release_candidates = s3cret", "", ("line 1", "line 2")),
    (".asdfrc", "token = yes", "", ("line 1",)),
    (MISE, "[tools]\nnode = '20'\ngo = 'latest' # x", '[tools]\n"node" = "20"\n"go" = "latest"\n', ()),
    (MISE, "[tools]\nnode = ['20', '18']\nx = 3", '[tools]\n"node" = ["20", "18"]\n"x" = "3"\n', ()),
    (MISE, "[tools]\n'npm:@scope/x' = '1'", '[tools]\n"npm:@scope/x" = "1"\n', ()),
    (MISE, "[tools]\nx = {version='1', install_env={T='canary'}}", '[tools]\n"x" = "1"\n', ()),
    (MISE, "[tools]\nx = {postinstall='canary'}\ny = ['1', 'a b']", "", ("tools.x", "tools.y")),
    (MISE, "[tools]\n'cargo:https://u:canary@h/x' = '1'", "", ("an entry of tools",)),
    (MISE, "'canary canary' = 1", "", ("a table",)),
    (MISE, "[settings]\nquiet = true\njobs = 4", '[settings]\n"quiet" = true\n"jobs" = 4\n', ()),
    (MISE, "[settings]\ndisable_tools = ['node']", '[settings]\n"disable_tools" = ["node"]\n', ()),
    (
        MISE,
        "[settings]\nx = ['a']\ny = 'canary'\nz = 12345678",
        "",
        ("settings.x", "settings.y", "settings.z"),
    ),
    (MISE, "settings.sops.age_key = 'canary'", "", ("settings.sops",)),
    # The ways to write an environment, each of which once was missed.
    (MISE, "env = { GH_PAT = 'canary' }", "", ("env",)),
    (MISE, "env.STRIPE = 'canary'", "", ("env",)),
    (MISE, "[env.dev]\nX = 'canary'\n[tools]\ngo = '1'", '[tools]\n"go" = "1"\n', ("env",)),
    (MISE, "[[env]]\nX = 'canary'", "", ("env",)),
    (MISE, '["env"]\nX = "canary"', "", ("env",)),
    (MISE, '"\\u0065nv".X = "canary"', "", ("env",)),
    (MISE, "[tasks.x.env]\nX = 'canary'\n[alias]\nx = 'canary'", "", ("tasks", "alias")),
    (MISE, "# GH_PAT = 'canary'\n[tools] # canary\nx = '1'", '[tools]\n"x" = "1"\n', ()),
    (MISE, "x = '''\n[tools]\ngo = 'canary'\n'''", "", ("x",)),
    (MISE, "tools = 'canary'", "", ("tools",)),
    (MISE, "[tools]", "", ()),
]


@pytest.mark.parametrize(("name", "text", "kept", "left"), ROWS, ids=[text for _, text, _, _ in ROWS])
def test_what_is_understood_is_written_anew_and_the_rest_is_named(
    name: str, text: str, kept: str, left: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "settings"
    file.write_text(text)
    assert settings.read(str(file), name) == settings.Known(kept, left)
    assert "canary" not in f"{kept}{left}"
    if name == MISE:
        assert set(tomllib.loads(kept)) <= {"tools", "settings"}


@pytest.mark.parametrize(
    "content",
    [b"[tools\n", b"\xff", b"#" * (settings.LARGEST + 1), b"a." * 9999 + b"a = 1", b"x = " + b"[" * 9999],
    ids=["no TOML", "no UTF-8", "too large", "too many dots", "too deep"],
)
def test_what_is_not_of_its_form_is_not_told_at_all(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_bytes(content)
    assert settings.read(str(file), MISE) is None
    assert settings.read(f"{tmp_path}/none", MISE) is None


def test_every_file_of_the_table_has_a_form(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for manager in MANAGERS:
        for name in manager.files.split():
            assert settings.read(f"{tmp_path}/empty", name) == settings.Known("", ())
