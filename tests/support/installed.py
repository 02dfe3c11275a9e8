"""jail installed from this checkout's wheel, as pip and pipx leave it, without asking an index.

Rule: jail comes from a wheel built here; its libraries are copied, file by file, from the environment that
runs the tests. The folder is enterable by every uid, since jail started by root lets an unprivileged one run
the walls.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parents[2]


class Installed(NamedTuple):
    """Where one installation lies: its folder, bin/jail in it, its interpreter, its site-packages."""

    root: Path
    command: Path
    python: Path
    packages: Path


def build_wheel(folder: Path) -> None:
    """Build the wheel of this checkout into `folder`."""
    command = [sys.executable, "-I", "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    run_or_show(command, cwd=CHECKOUT)


def environment_in(folder: Path) -> Installed:
    """Where things lie in the environment that `make_environment` made in `folder`."""
    packages = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    return Installed(folder, folder / "bin" / "jail", folder / "bin" / "python", packages)


def make_environment(folder: Path, wheel: Path) -> Installed:
    """A virtual environment in `folder` with `wheel` and what it needs."""
    base = os.path.realpath(sys.executable)
    run_or_show([base, "-I", "-m", "venv", "--without-pip", str(folder)])
    found = environment_in(folder)
    for name in sorted(needed_by(metadata_of(wheel))):
        copy_distribution(name, found.packages)
    # This environment's pip, run by the new one's Python: it installs into the Python that runs it. It sees
    # this environment's jail as installed already, hence --ignore-installed.
    pip = {"PYTHONPATH": sysconfig.get_path("purelib"), "PATH": os.defpath, "HOME": str(folder)}
    install = [
        "-m",
        "pip",
        "install",
        "-q",
        "--ignore-installed",
        "--no-index",
        "--no-deps",
        "--no-cache-dir",
        str(wheel),
    ]
    run_or_show([str(found.python), "-s", *install], env=pip)
    return found


def metadata_of(wheel: Path) -> list[str]:
    """The requirements that a wheel states, those of extras left out."""
    found = list(metadata.Distribution.discover(path=[str(wheel)]))
    return [text for dist in found for text in dist.requires or [] if "extra ==" not in text]


def needed_by(requirements: list[str]) -> set[str]:
    """The names of all distributions that `requirements` lead to and that are installed here."""
    names: set[str] = set()
    waiting = list(requirements)
    while waiting:
        name = re.split(r"[^A-Za-z0-9._-]", waiting.pop().strip(), maxsplit=1)[0]
        if name not in names and list(metadata.distributions(name=name)):
            names.add(name)
            waiting += [text for text in metadata.requires(name) or [] if "extra ==" not in text]
    return names


def copy_distribution(name: str, packages: Path) -> None:
    """Copy the modules of an installed distribution, not its scripts, into `packages`."""
    dist = metadata.distribution(name)
    here = Path(str(dist.locate_file("."))).resolve()
    sources = [Path(str(file.locate())) for file in dist.files or []]
    # An older pip leaves an .egg-info, whose list is relative to itself and is read by importlib from Python
    # 3.12 on.
    legacy = (dist.read_text("installed-files.txt") or "").splitlines()
    sources += [
        source for folder in here.glob("*.egg-info") for line in legacy if (source := folder / line).is_file()
    ]
    for source in (path.resolve() for path in sources):
        if source.is_file() and source.is_relative_to(here):
            target = packages / source.relative_to(here)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def run_or_show(command: list[str], **options: object) -> None:
    """Run `command`; when it fails, fail with what it printed."""
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, **options)  # type: ignore[call-overload] # options of run()
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
