"""The installed command `jail`: it starts from wherever pip and pipx put it, and nothing planted runs in it.

For every plant there is a positive control against plain `python3`.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support.installed import Installed
from support.plants import PLANTS, lay

COMMANDS = {"jail --help": ["--help"], "jail plan": ["plan", "--", "true"], "jail run": ["run", "--", "true"]}
EMPTY = {"PATH": os.defpath, "HOME": "/nonexistent", "LANG": "C.UTF-8"}
MAIN_THAT_TELLS = (
    "import sys\nprint(sys.executable, sys.path, sys.flags.isolated, sys.flags.no_site, sys.argv[1:])\n"
)


def result_of(
    command: list[str | Path], folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )


def marks(marker: Path) -> list[str]:
    return marker.read_text(encoding="utf-8").splitlines() if marker.exists() else []


@pytest.mark.parametrize("plant", PLANTS)
def test_control_each_plant_catches_a_plain_python(plant: str, installed: Installed, tmp_path: Path) -> None:
    """Plain python3 runs the planted code, or (LD_LIBRARY_PATH) does not even start."""
    marker, workspace = tmp_path / "marker", tmp_path / "workspace"
    workspace.mkdir()
    environment = lay(PLANTS[plant], workspace, marker)
    plain = os.path.realpath(sys.executable)
    done = result_of([plain, *PLANTS[plant].control], workspace, environment)
    assert marks(marker) or (plant == "LD_LIBRARY_PATH" and done.returncode == 127), done.stderr


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("plant", [plant for plant in PLANTS if plant != "LD_LIBRARY_PATH"])
def test_no_plant_runs_in_the_interpreter_of_jail(
    plant: str, command: str, installed: Installed, tmp_path: Path
) -> None:
    marker, workspace = tmp_path / "marker", tmp_path / "workspace"
    workspace.mkdir()
    environment = lay(PLANTS[plant], workspace, marker)
    done = result_of([installed.command, *COMMANDS[command]], workspace, environment)
    # The loader has obeyed LD_PRELOAD for /bin/sh before the first line of the entry could drop it.
    shell = os.path.realpath("/bin/sh")
    assert [line for line in marks(marker) if not line.endswith(f" {shell}")] == []
    assert done.returncode == 0, done.stderr


def test_pipx_like_link_starts_the_same(installed: Installed, tmp_path: Path) -> None:
    """pipx links ~/.local/bin/jail to the environment's; a link to that, and a relative one, start too."""
    first, second, third = (tmp_path / name for name in ("jail", "linked", "relative"))
    first.symlink_to(installed.command)
    second.symlink_to(first)
    third.symlink_to("linked")
    for command in (first, second, third, "./relative"):
        done = result_of([command, "--help"], tmp_path, EMPTY)
        assert (done.returncode, done.stderr) == (0, "")


def test_found_through_path_it_starts(installed: Installed, tmp_path: Path) -> None:
    environment = EMPTY | {"PATH": f"{installed.command.parent}:{os.defpath}"}
    assert result_of(["/bin/sh", "-c", "jail --help"], tmp_path, environment).returncode == 0


def test_nothing_in_path_is_started(installed: Installed, tmp_path: Path) -> None:
    """Programs of every name that the entry could call lie first in PATH, and tell when they run."""
    link, told = tmp_path / "link", tmp_path / "told"
    link.symlink_to(installed.command)
    for name in ("readlink", "dirname", "python", "python3", "env", "sed", "printf", "id"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho {name} >>{told}\n", encoding="utf-8")
        program.chmod(0o755)
    for command in (link, installed.command):
        done = result_of([command, "--help"], tmp_path, {"PATH": str(tmp_path), "HOME": "/nonexistent"})
        assert (done.returncode, told.exists()) == (0, False)


@pytest.mark.parametrize(
    ("prefix", "packages"), [("home/.local", "site-packages"), ("usr/local", "dist-packages")]
)
def test_installed_for_the_user_or_the_system_it_starts_the_matching_python(
    prefix: str, packages: str, installed: Installed, tmp_path: Path
) -> None:
    """`pip install --user`, Debian's /usr/local: no python beside the command, so the system's pythonX.Y."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if not any(os.access(f"{folder}/{version}", os.X_OK) for folder in ("/usr/bin", "/usr/local/bin")):
        pytest.skip(f"the tests' own {version} is neither in /usr/bin nor in /usr/local/bin")
    command = tmp_path / prefix / "bin" / "jail"
    main = tmp_path / prefix / "lib" / version / packages / "jail" / "__main__.py"
    for path in (command, main):
        path.parent.mkdir(parents=True)
    shutil.copy(installed.command, command)
    main.write_text(MAIN_THAT_TELLS, encoding="utf-8")
    done = result_of([command, "run", "a b", "", "*"], tmp_path, EMPTY)
    assert f"bin/{version} " in done.stdout
    assert done.stdout.endswith("1 1 ['run', 'a b', '', '*']\n")


def folders_of(python: str | Path, main: Path, folder: Path) -> list[str]:
    """What jail/__main__.py adds to sys.path under `python`; importing it alone changes nothing."""
    code = (
        "import runpy, sys; before = list(sys.path); main = sys.argv[1]; module = runpy.run_path(main)\n"
        "assert sys.path == before; print(*module['installed_folders'](main), sep='\\n')\n"
    )
    done = result_of([python, "-I", "-S", "-c", code, main], folder, EMPTY)
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if "/lib64/" not in line]


def test_in_a_virtual_environment_only_its_own_folder_is_added(installed: Installed, tmp_path: Path) -> None:
    for main in (
        installed.packages,
        installed.command.parent / ".." / installed.packages.relative_to(installed.root),
    ):
        assert folders_of(installed.python, main / "jail" / "__main__.py", tmp_path) == [
            str(installed.packages)
        ]


def test_installed_for_the_user_the_system_s_folders_come_last(installed: Installed, tmp_path: Path) -> None:
    own = tmp_path / "home/.local" / installed.packages.relative_to(installed.root)
    shutil.copytree(installed.packages / "jail", own / "jail")
    system = os.path.realpath(sys.executable)
    folders = folders_of(system, own / "jail" / "__main__.py", tmp_path)
    assert folders[0] == str(own)
    prefix = os.path.dirname(os.path.dirname(system))
    assert all(folder.startswith(f"{prefix}/") for folder in folders[1:])


@pytest.mark.parametrize("start", [["-m", "jail"], ["-I", "-m", "jail"]])
def test_started_as_a_module_it_refuses(start: list[str], installed: Installed, tmp_path: Path) -> None:
    done = result_of([installed.python, *start, "--help"], tmp_path, EMPTY)
    assert done.returncode == 125
    assert "to do: start the command jail itself" in done.stderr


def test_editable_install_gets_a_sentence_not_a_traceback(
    installed: Installed, checkout: Path, tmp_path: Path
) -> None:
    """An editable install has a .pth file, which -S leaves unread, in place of the package."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    (tmp_path / "lib" / "python3.11" / "site-packages" / "_jail.pth").write_text(
        f"{checkout}\n", encoding="utf-8"
    )
    shutil.copy(installed.command, tmp_path / "bin" / "jail")
    done = result_of([tmp_path / "bin" / "jail", "--help"], tmp_path, EMPTY)
    assert done.returncode == 125
    assert "not editable: pipx install FOLDER" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_wheel_carries_policies_entry_and_licence(wheel: Path, checkout: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    shipped = {f"jail/policies/{path.name}" for path in (checkout / "policies").glob("*.toml")}
    assert shipped
    assert shipped <= set(names)
    assert [name for name in names if name.endswith(".data/scripts/jail")]
    assert [name for name in names if name.endswith("licenses/LICENSE")]
    assert not [name for name in names if name.startswith(("tests/", "scripts/")) or "__pycache__" in name]
