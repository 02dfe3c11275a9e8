"""Which files take part in a policy, and that none is believed that is not what it seems to be."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from jail.errors import EXIT_USAGE, JailError, printable
from jail.policy import sources
from jail.policy.sources import LARGEST_FILE, LARGEST_PROJECT, PROJECT_FILE, Given, gather
from support.composed import HOME, LEVELS, PARTS

FINE = '[limits]\ntmp = "1 MiB"\n'


@pytest.fixture
def user(tmp_path: Path) -> Path:
    (tmp_path / "config").mkdir()
    return tmp_path / "config" / "policy.toml"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "workspace").mkdir()
    return tmp_path / "workspace" / PROJECT_FILE


def given(user: Path, project: Path, chosen: str | None = None) -> Given:
    return gather(chosen, HOME, str(user), str(project.parent))


def refusal(user: Path, project: Path) -> JailError:
    with pytest.raises(JailError) as error:
        given(user, project)
    assert error.value.code == EXIT_USAGE
    assert error.value.hint
    assert error.value.lines() == [printable(line) for line in error.value.lines()]
    return error.value


def test_files_that_are_not_there_take_no_part(user: Path, project: Path) -> None:
    assert given(user, project) == Given("", None, None, None, HOME, "")
    assert given(user.parent / "none" / "x.toml", project.parent / "none" / "y") == Given(
        "", None, None, None, HOME, ""
    )


def test_files_that_are_there_do(user: Path, project: Path) -> None:
    user.write_text(FINE, encoding="utf-8")
    project.write_text("# mine\n", encoding="utf-8")
    found = given(user, project, "ci")
    assert found.level == "ci"
    assert found.user is not None
    assert found.project is not None
    assert (found.user.file, found.user.content) == (str(user), FINE.encode())
    assert (found.project.file, found.project.content) == (os.path.realpath(project), b"# mine\n")
    assert found.workspace == os.path.realpath(project.parent)


def test_a_policy_file_of_the_command_line_leaves_the_persons_out_and_the_projects_in(
    user: Path, project: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own.toml"
    for file in (own, project):
        file.write_text(FINE, encoding="utf-8")
    user.write_text("not even TOML", encoding="utf-8")
    user.chmod(0o666)
    found = given(user, project, str(own))
    assert (found.level, found.user) == ("", None)
    assert found.own is not None
    assert found.project is not None


def a_fifo(path: Path) -> None:
    os.mkfifo(path)


def a_folder(path: Path) -> None:
    path.mkdir()


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        here = os.open(path.parent, os.O_RDONLY)
        bound.bind(f"/proc/self/fd/{here}/{path.name}")
        os.close(here)


def a_large_file(path: Path) -> None:
    path.write_bytes(b"#" * (LARGEST_FILE + 1))


def test_a_projects_file_may_be_as_large_as_the_limit_and_no_larger(tmp_path: Path) -> None:
    file = tmp_path / PROJECT_FILE
    file.write_bytes(b"#" * LARGEST_PROJECT)
    project = gather(None, HOME, workspace=str(tmp_path)).project
    assert project is not None
    assert len(project.content) == LARGEST_PROJECT
    file.write_bytes(b"#" * (LARGEST_PROJECT + 1))
    with pytest.raises(JailError, match="larger than 64 KiB"):
        gather(None, HOME, workspace=str(tmp_path))


def a_sparse_file(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def one_that_anybody_may_write(path: Path) -> None:
    path.write_text(FINE, encoding="utf-8")
    path.chmod(0o646)


def a_dangling_link(path: Path) -> None:
    path.symlink_to("nowhere")


def a_link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def a_link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


ODD = (
    *(a_fifo, a_folder, a_socket, a_large_file, a_sparse_file, one_that_anybody_may_write),
    *(a_dangling_link, a_link_to_itself, a_link_to_a_device),
)


@pytest.mark.parametrize("make", ODD)
@pytest.mark.parametrize("which", ["user", "project"])
def test_what_is_there_and_no_plain_file_refuses_the_run(
    make: Callable[[Path], None], which: str, user: Path, project: Path
) -> None:
    path = {"user": user, "project": project}[which]
    make(path)
    assert refusal(user, project).where == os.path.join(os.path.realpath(path.parent), path.name)


@pytest.mark.parametrize("target", ["/etc/shadow", "/etc/passwd", "good.toml", "../config/policy.toml"])
def test_the_projects_file_is_never_read_through_a_link(target: str, user: Path, project: Path) -> None:
    """Else an error would show the person's files line by line, or settle where they should not."""
    (project.parent / "good.toml").write_text(FINE, encoding="utf-8")
    user.write_text(FINE, encoding="utf-8")
    project.symlink_to(target)
    assert "symbolic link" in refusal(user, project).message


def test_the_persons_file_may_be_a_link_of_theirs(user: Path, project: Path, tmp_path: Path) -> None:
    (tmp_path / "dotfiles.toml").write_text(FINE, encoding="utf-8")
    user.symlink_to(tmp_path / "dotfiles.toml")
    found = given(user, project).user
    assert found is not None
    assert found.content == FINE.encode()


def test_a_linked_workspace_is_the_folder_that_it_leads_to(user: Path, project: Path, tmp_path: Path) -> None:
    project.write_text(FINE, encoding="utf-8")
    (tmp_path / "link").symlink_to("workspace")
    assert given(user, tmp_path / "link" / PROJECT_FILE) == given(user, project)


@pytest.mark.parametrize("which", ["user", "project"])
def test_a_file_that_cannot_be_read_refuses_the_run(which: str, user: Path, project: Path) -> None:
    path = {"user": user, "project": project}[which]
    path.write_text(FINE, encoding="utf-8")
    path.chmod(0)
    assert "Permission denied" in refusal(user, project).message


@pytest.mark.root
def test_the_persons_file_belongs_to_the_person(user: Path, project: Path) -> None:
    user.write_text(FINE, encoding="utf-8")
    assert given(user, project).user is not None
    os.chown(user, 12345, 12345)
    assert "somebody else" in refusal(user, project).message


def test_a_planted_file_beside_the_shipped_ones_is_not_reached_by_any_name() -> None:
    for name in ("", "parts/system", "../overnight", "parts", "system"):
        with pytest.raises(JailError):
            gather(name, HOME)
    assert not {*LEVELS} & {*PARTS}


def test_the_shipped_names_are_those_of_the_files() -> None:
    assert sources.shipped_names() == LEVELS
    assert sources.shipped_names("parts") == PARTS
    assert sources.shipped_names("none") == []
    assert sources.shipped("system", "parts").content.startswith(b"# part system")


def test_the_state_of_a_file_changes_with_it(tmp_path: Path) -> None:
    file = tmp_path / "x"
    assert sources.state(str(file)) == ""
    file.write_text("a", encoding="utf-8")
    first = sources.state(str(file))
    assert first == sources.read(str(file)).state
    file.chmod(0o600)
    assert sources.state(str(file)) != first
