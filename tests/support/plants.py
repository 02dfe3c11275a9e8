"""Code planted where a careless Python, or a loader, would run it: each plant leaves a line in a marker file.

Rule: a plant is files in one folder and variables in the environment; every plant must fire against plain
python3 (the positive control), else its silence against jail says nothing.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

MARK = """import posix
file = posix.open({marker!r}, posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND)
posix.write(file, {name!r} + posix.readlink(b"/proc/self/exe") + b"\\n")
posix.close(file)
"""
"""Built-in functions and bytes only: a planted `encodings` runs before there is a codec or `open`."""
PRELOAD = r"""
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void plant(void) {
    char line[4096] = "preload ";
    ssize_t size = readlink("/proc/self/exe", line + 8, sizeof line - 10);
    int fd = open("@MARKER@", O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (fd < 0 || size < 0) return;
    line[8 + size] = '\n';
    if (write(fd, line, 9 + size) < 0) return;
    close(fd);
}
"""
PLAIN = "import tomllib, click, jail, prctl, json"
"""What the control's python3 imports: the names that the plants take."""
USER_SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"


class Plant(NamedTuple):
    """One way in: files in a folder, {here} in variables is that folder, and how python3 meets them."""

    files: tuple[str, ...]
    variables: tuple[tuple[str, str], ...]
    control: tuple[str, ...]


MODULES = (
    "tomllib.py",
    "json.py",
    "click.py",
    "prctl.py",
    "os.py",
    "jail/__init__.py",
    "jail/cli/__init__.py",
)
PLANTS = {
    "modules in the current folder": Plant(MODULES, (), ("-c", PLAIN)),
    "PYTHONPATH": Plant(MODULES, (("PYTHONPATH", "{here}"),), ("-c", PLAIN)),
    "an empty PYTHONPATH entry": Plant(MODULES, (("PYTHONPATH", "/nonexistent:"),), ("-c", PLAIN)),
    "sitecustomize": Plant(("sitecustomize.py",), (("PYTHONPATH", "{here}"),), ("-c", "pass")),
    "usercustomize": Plant(
        (f"base/{USER_SITE}/usercustomize.py",), (("PYTHONUSERBASE", "{here}/base"),), ("-c", "pass")
    ),
    "a .pth file of the user": Plant(
        (f"../home/.local/{USER_SITE}/plant.pth",), (("HOME", "{here}/../home"),), ("-c", "pass")
    ),
    "PYTHONSTARTUP": Plant(("startup.py",), (("PYTHONSTARTUP", "{here}/startup.py"),), ("-i",)),
    "PYTHONWARNINGS": Plant(
        ("planted_warning.py",),
        (("PYTHONWARNINGS", "error::planted_warning.Name"), ("PYTHONPATH", "{here}")),
        ("-c", "pass"),
    ),
    "PYTHONBREAKPOINT": Plant(
        ("planted_hook.py",),
        (("PYTHONBREAKPOINT", "planted_hook.hook"), ("PYTHONPATH", "{here}")),
        ("-W", "ignore", "-c", "breakpoint()"),
    ),
    "PYTHONHOME": Plant(
        (f"lib/python{sys.version_info.major}.{sys.version_info.minor}/encodings/__init__.py",),
        (("PYTHONHOME", "{here}"),),
        ("-c", "pass"),
    ),
    "LD_PRELOAD": Plant(("plant.so",), (("LD_PRELOAD", "{here}/plant.so"),), ("-c", "pass")),
    "LD_AUDIT": Plant(("plant.so",), (("LD_AUDIT", "{here}/plant.so"),), ("-c", "pass")),
    "LD_LIBRARY_PATH": Plant(("libc.so.6",), (("LD_LIBRARY_PATH", "{here}"),), ("-c", "pass")),
}


def lay(plant: Plant, folder: Path, marker: Path) -> dict[str, str]:
    """Write the plant's files; the environment that leads to them. HOME is beside the folder."""
    (folder.parent / "home").mkdir()
    for name in plant.files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.name == "libc.so.6":
            path.write_bytes(b"not a library")
        elif path.suffix == ".so":
            compile_preload(path, marker)
        else:
            code = MARK.format(marker=bytes(marker), name=f"{name} ".encode())
            # site runs the lines of a .pth file that begin with "import".
            line = f"import posix; exec({code!r})\n"
            path.write_text(line if path.suffix == ".pth" else code, encoding="utf-8")
    environment = {"PATH": os.defpath, "HOME": str(folder.parent / "home"), "LANG": "C.UTF-8"}
    return environment | {name: value.format(here=folder) for name, value in plant.variables}


def compile_preload(path: Path, marker: Path) -> None:
    """A shared object whose constructor appends the executable that loaded it to `marker`."""
    source = PRELOAD.replace("@MARKER@", str(marker))
    command = ["gcc", "-shared", "-fPIC", "-o", str(path), "-x", "c", "-"]
    subprocess.run(command, input=source, text=True, check=True, capture_output=True, timeout=60)
