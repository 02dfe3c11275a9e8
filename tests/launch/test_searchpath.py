"""PATH as it is, and when it is worth a search."""

import os
import sys
from pathlib import Path

import pytest

from jail.launch import searchpath, ways
from jail.plan.facts import Tools
from jail.policy.value import TOOLCHAINS


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path))


def ask(path: str, home: Path, /, **fields: object) -> searchpath.Ask:
    entries = searchpath.entries({"PATH": path}, ways.of(f"{home}/work"))
    found = searchpath.Ask(
        entries, {"PATH": path}, str(home), ways.of(f"{home}/work"), ("/usr",), tuple(TOOLCHAINS)
    )
    return found._replace(**fields)


def test_entries_keep_their_order_and_what_is_odd_is_absent(home: Path) -> None:
    found = searchpath.entries({"PATH": f":bin:/usr/bin:{home}/none:/usr/../usr/bin"}, ways.of("/work"))
    assert [place.real_kind for place in found] == ["absent", "absent", "folder", "absent", "folder"]
    assert [place.given for place in found] == ["", "bin", "/usr/bin", f"{home}/none", "/usr/bin"]


def test_a_path_of_the_system_is_not_searched_and_the_tables_are_not_imported(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searchpath, "LOCAL", "/nonexistent")
    monkeypatch.setattr(searchpath, "DISTRIBUTED", ())
    monkeypatch.delitem(sys.modules, "jail.launch.toolchains", raising=False)
    assert searchpath.tools(ask("/usr/bin", home), "true") == Tools()
    assert "jail.launch.toolchains" not in sys.modules


def test_a_path_out_of_it_is(home: Path) -> None:
    (home / "bin").mkdir()
    (home / "bin" / "tool").symlink_to(home / "tool")
    (home / "tool").write_text("#!/bin/sh\n")
    (home / "tool").chmod(0o755)
    found = searchpath.tools(ask(f"{home}/bin:/usr/bin", home), "true")
    assert [place.real for tool in found.found for place in tool.given] == [f"{home}/tool"]


def test_a_distributions_rustup_leads_to_what_it_keeps_at_home(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binaries = home / "system"
    binaries.mkdir()
    (binaries / "rustup").touch()
    (home / "person" / ".rustup" / "toolchains").mkdir(parents=True)
    monkeypatch.setattr(searchpath, "LOCAL", "/nonexistent")
    start = ask(str(binaries), home, home=f"{home}/person", system=(str(binaries),))
    found = searchpath.tools(start, "true")
    assert [tool.name for tool in found.found] == ["rustup"]
    assert searchpath.tools(start._replace(parts=()), "true") == Tools()


def test_an_administrators_link_is_followed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = home / "local"
    local.mkdir()
    (home / "tool").write_text("#!/bin/sh\n")
    (home / "tool").chmod(0o755)
    start = ask(str(local), home, system=(str(local),))
    monkeypatch.setattr(searchpath, "LOCAL", str(local))
    monkeypatch.setattr("jail.launch.toolchains.LOCAL", str(local))
    assert searchpath.tools(start, "true") == Tools()
    (local / "tool").symlink_to(home / "tool")
    assert [tool.root for tool in searchpath.tools(start, "true").found] == [str(home)]


def test_the_command_counts_where_it_is_a_link_and_not_the_workspaces(home: Path) -> None:
    for name in ("work/bin", "bin"):
        (home / name).mkdir(parents=True)
        (home / name / "tool").symlink_to("/usr/bin/true")
    (home / "bin" / "plain").write_text("#!/bin/sh\n")
    (home / "bin" / "plain").chmod(0o755)
    workspace = f"{home}/work"

    def program(command: str, path: str) -> str:
        return searchpath._program(
            command, searchpath.entries({"PATH": path}, ways.of(workspace)), ways.of(workspace)
        )

    assert program("tool", f"{home}/bin") == f"{home}/bin/tool"
    assert program("tool", f"{workspace}/bin:{home}/bin") == ""
    assert program("plain", f"{home}/bin") == ""
    assert program("/usr/bin/true", f"{home}/bin") == program("none", f"{home}/bin") == ""
