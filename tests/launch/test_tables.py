"""Reading the tables against the file system: patterns, links and roots."""

import os
from pathlib import Path

import pytest

from jail.launch import tables, ways
from jail.launch.managers import MANAGERS

PYENV = next(manager for manager in MANAGERS if manager.name == "pyenv")
ASDF = next(manager for manager in MANAGERS if manager.name == "asdf")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path))


def test_a_pattern_finds_what_is_there(folder: Path) -> None:
    for name in ("versions/3.11/etc", "versions/3.12", "layout.v4", "bin"):
        (folder / name).mkdir(parents=True)

    def found(pattern: str) -> list[str]:
        return [os.path.relpath(path, folder) for path in tables.expand(str(folder), pattern)]

    assert found(".") == ["."]
    assert found("bin") == ["bin"]
    assert found("versions/*") == ["versions/3.11", "versions/3.12"]
    assert found("versions/*/etc") == ["versions/3.11/etc"]
    assert found("layout.*") == ["layout.v4"]
    assert found("none/*") == found("*.none") == found("none") == []


def test_a_pattern_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        (folder / f"{number}").mkdir()
    monkeypatch.setattr(tables, "MOST_ENTRIES", 5)
    assert len(tables.listing(str(folder), 5)) == len(tables.listing(str(folder))) == 5
    assert tables.listing(f"{folder}/none") == []


def test_what_was_not_seen_whole_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("few/1", "many/1", "many/2", "many/3", "closed/1"):
        (folder / name).mkdir(parents=True)
    (folder / "few" / "2").touch()
    monkeypatch.setattr(tables, "MOST_ENTRIES", 2)
    (folder / "closed").chmod(0o311)
    said: dict[str, set[str]] = {}
    for pattern in ("few/*", "few/*/*", "many/*/x", "closed/*", "none/*", "closed/1"):
        tables.expand(str(folder), pattern, said.setdefault(pattern, set()))
    (folder / "closed").chmod(0o755)
    assert {pattern for pattern, unseen in said.items() if unseen} == {"many/*/x", "closed/*"}
    assert said["many/*/x"] == {f"{folder}/many"}


def test_links_are_followed_one_by_one_and_loops_end(folder: Path) -> None:
    (folder / "real").mkdir()
    (folder / "second").symlink_to("real")
    (folder / "first").symlink_to(f"{folder}/second/../second")
    (folder / "loop").symlink_to("loop")
    real, links = tables.resolved(f"{folder}/first/x")
    assert real == f"{folder}/real/x" == os.path.realpath(f"{folder}/first/x")
    assert [path for path, _ in links] == [f"{folder}/first", f"{folder}/second", f"{folder}/second"]
    assert tables.resolved(f"{folder}/loop") == (f"{folder}/loop", [])
    assert tables.resolved("/") == ("/", [])


def test_a_path_is_made_canonical_up_to_its_last_name(folder: Path) -> None:
    (folder / "real").mkdir()
    (folder / "link").symlink_to("real")
    (folder / "real" / "end").symlink_to("/etc")
    assert tables.canonical(f"{folder}/link/end") == f"{folder}/real/end"


def test_a_root_is_the_usual_one_or_what_the_variable_names(folder: Path) -> None:
    (folder / ".pyenv").mkdir()
    (folder / "other").mkdir()

    def root(**environ: str) -> str:
        found = {one.name: path for one, path in tables.roots(environ, str(folder), ways.of("/work"))}
        return found["pyenv"]

    assert root() == f"{folder}/.pyenv"
    assert root(PYENV_ROOT=f"{folder}/other") == f"{folder}/other"
    for unfit in ("", "other", str(folder), "/", "/usr", f"{folder}/none"):
        assert root(PYENV_ROOT=unfit) == f"{folder}/.pyenv"


def test_a_root_of_somebody_else_counts_not_at_all(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / ".pyenv").mkdir()
    real = tables._owner  # the folder of a test cannot be given away without being root
    monkeypatch.setattr(tables, "_owner", lambda path: 4242 if path.endswith(".pyenv") else real(path))
    assert not [one for one, _ in tables.roots({}, str(folder), ways.of("/work")) if one is PYENV]


def test_a_data_folder_of_ones_own_is_followed(folder: Path) -> None:
    (folder / "data" / "uv" / "python").mkdir(parents=True)
    found = tables.roots({"XDG_DATA_HOME": f"{folder}/data"}, str(folder), ways.of("/work"))
    assert f"{folder}/data/uv/python" in [path for _, path in found]


def test_installs_are_those_of_the_parts_in_use(folder: Path) -> None:
    for name in ("installs/nodejs", "installs/ruby", "installs/terraform"):
        (folder / name).mkdir(parents=True)
    assert "installs/nodejs installs/terraform" in tables.of_parts(ASDF, str(folder), ("node",))
    assert tables.of_parts(PYENV, str(folder), ()) == PYENV.given


def test_a_version_is_a_word_and_nothing_else() -> None:
    assert tables.is_plain("3.12.1")
    assert tables.is_plain("3.12:3.11")
    assert not any(map(tables.is_plain, ("", "a b", "$(x)", "../x", "a/b", "é")))


def test_a_folder_is_known_by_what_lies_in_it(folder: Path) -> None:
    assert tables.shape_of(str(folder)) is None
    (folder / "pyvenv.cfg").touch()
    shape = tables.shape_of(str(folder))
    assert shape is not None
    assert shape.name == "a virtual environment"
