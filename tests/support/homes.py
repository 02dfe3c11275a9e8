"""A home folder with toolchains as their installers lay them out, and the credentials that lie beside them.

Rule: the folders, links, shims and `#!` lines are those of pyenv, nvm, uv, rustup, cargo, pipx and agents'
installers; the programs behind them are copies of the system's own, or small ones that do the one thing which
decides whether the layout works inside: find their root by the variable or the link, and start what it names.
"""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from support.attempts import lay
from support.work import SYSTEM_PYTHON

MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"
"""Of SYSTEM_PYTHON, as which each Python here presents itself."""
VERSION = f"{MINOR}.99"
NODE = "v20.1.0"
TOOLCHAIN = "stable-x86_64-unknown-linux-gnu"

SHIM = """\
#!/usr/bin/env bash
set -e
[ -n "$PYENV_DEBUG" ] && set -x
program="${{0##*/}}"
export PYENV_ROOT="{root}"
exec "{root}/libexec/pyenv" exec "$program" "$@"
"""
PYENV = """\
#!/usr/bin/env bash
set -e
: "${PYENV_ROOT:=$HOME/.pyenv}"
version="${PYENV_VERSION:-$(cat "$PYENV_ROOT/version")}"
[ "$1" = exec ] || { echo "$version"; exit; }
program="$2"
shift 2
exec "$PYENV_ROOT/versions/$version/bin/$program" "$@"
"""
NPM = """\
#!/usr/bin/env node
console.log(process.execPath, require("../lib/version.json").version)
"""
UV = """\
#!/bin/sh
root="${UV_PYTHON_INSTALL_DIR:-$HOME/.local/share/uv/python}"
exec "$root/cpython-MINOR-linux-x86_64-gnu/bin/pythonMINOR" "$@"
""".replace("MINOR", MINOR)
RUSTUP = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a proxy of rustup does: by the name that it was called by, the program of the default toolchain. */
int main(int count, char **words) {
    char path[4096], line[256], toolchain[256] = "";
    const char *name = strrchr(words[0], '/'), *root = getenv("RUSTUP_HOME");
    name = name ? name + 1 : words[0];
    if (root) snprintf(path, sizeof path, "%s/settings.toml", root);
    else snprintf(path, sizeof path, "%s/.rustup/settings.toml", getenv("HOME"));
    FILE *settings = fopen(path, "r");
    if (!settings) { perror(path); return 1; }
    while (fgets(line, sizeof line, settings)) sscanf(line, "default_toolchain = \"%255[^\"]\"", toolchain);
    *strrchr(path, '/') = 0;
    if (!strcmp(name, "rustup")) { puts(toolchain); return 0; }
    strcat(strcat(strcat(path, "/toolchains/"), toolchain), "/bin/");
    execv(strcat(path, name), words);
    perror(path);
    return 1;
}
"""
CARGO = """\
#!/bin/sh
mkdir -p "$CARGO_HOME/registry/cache" && echo "cargo 1.80.0 $CARGO_HOME"
"""

CREDENTIALS = (
    ".cargo/credentials.toml",
    ".cargo/config.toml",
    ".npmrc",
    ".pypirc",
    ".netrc",
    ".config/pip/pip.conf",
    ".config/uv/uv.toml",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".gem/credentials",
    ".bundle/config",
    ".local/share/uv/credentials/credentials.toml",
    ".local/share/uv/tools/lint/uv-receipt.toml",
    ".local/share/pipx/venvs/cow/pipx_metadata.json",
    ".local/share/agent/auth.json",
    f".pyenv/versions/{VERSION}/pip.conf",
    f".nvm/versions/node/{NODE}/etc/npmrc",
    ".nvm/.npmrc",
)
"""Each holds the canary."""
OTHERS = (
    "projects/other/main.c",
    ".cache/pip/wheel",
    ".cargo/registry/cache/crate",
    ".local/share/notes/diary",
)
"""Things of the person that are no credentials, and not given either."""
CANARY = "canary-of-a-toolchain"

PATH = (
    ".cargo/bin",
    ".pyenv/shims",
    ".pyenv/bin",
    f".nvm/versions/node/{NODE}/bin",
    ".local/bin",
)


def furnish(home: Path) -> str:
    """Lay everything out in `home`; returns PATH as the person's shell has it."""
    _pyenv(home / ".pyenv")
    _nvm(home / ".nvm")
    _uv(home)
    _rust(home)
    _tools(home)
    lay(home, dict.fromkeys((*CREDENTIALS, *OTHERS), CANARY))
    return ":".join([*(f"{home}/{entry}" for entry in PATH), "/usr/bin", "/bin"])


def _executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def _python(folder: Path, *names: str) -> None:
    """A Python of its own in `folder`: a copy of the system's binary, with its own site-packages."""
    command: Sequence[str] = [SYSTEM_PYTHON, "-I", "-m", "venv", "--copies", "--without-pip", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    for name in names:
        if not (folder / "bin" / name).exists():
            shutil.copy(folder / "bin" / "python3", folder / "bin" / name)


def _pyenv(root: Path) -> None:
    _executable(root / "libexec" / "pyenv", PYENV)
    (root / "bin").mkdir()
    (root / "bin" / "pyenv").symlink_to("../libexec/pyenv")
    for name in ("python", "python3"):
        _executable(root / "shims" / name, SHIM.format(root=root))
    _python(root / "versions" / VERSION)
    (root / "version").write_text(f"{VERSION}\n")


def _nvm(root: Path) -> None:
    version = root / "versions" / "node" / NODE
    lay(version, {"lib/node_modules/npm/lib/version.json": '{"version": "9.5.1"}'})
    _executable(version / "lib/node_modules/npm/bin/npm-cli.js", NPM)
    (version / "bin").mkdir()
    (version / "bin" / "npm").symlink_to("../lib/node_modules/npm/bin/npm-cli.js")
    shutil.copy("/usr/bin/node", version / "bin" / "node")


def _uv(home: Path) -> None:
    _executable(home / ".local/bin/uv", UV)
    _python(home / f".local/share/uv/python/cpython-{VERSION}-linux-x86_64-gnu", f"python{MINOR}")
    (home / f".local/share/uv/python/cpython-{MINOR}-linux-x86_64-gnu").symlink_to(
        f"cpython-{VERSION}-linux-x86_64-gnu"
    )
    tool = home / ".local/share/uv/tools/lint"
    interpreter = home / f".local/share/uv/python/cpython-{MINOR}-linux-x86_64-gnu/bin/python{MINOR}"
    _environment(tool, interpreter, "lint")
    (home / ".local/bin/lint").symlink_to(tool / "bin" / "lint")


def _environment(folder: Path, interpreter: Path, name: str) -> None:
    """A virtual environment with one module, as uv and pipx make it: `bin/python` is a link (PEP 405)."""
    lay(folder, {"pyvenv.cfg": f"home = {interpreter.parent}\ninclude-system-site-packages = false\n"})
    lay(folder, {f"lib/python{MINOR}/site-packages/{name}_module.py": f"said = '{name} works'\n"})
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(interpreter)
    program = f"#!{folder}/bin/python\nimport sys, {name}_module\nprint({name}_module.said, sys.prefix)\n"
    _executable(folder / "bin" / name, program)


def _rust(home: Path) -> None:
    binaries = home / ".cargo" / "bin"
    binaries.mkdir(parents=True)
    command = ["cc", "-x", "c", "-o", str(binaries / "rustup"), "-"]
    subprocess.run(command, input=RUSTUP, text=True, check=True, capture_output=True)
    for name in ("cargo", "rustc"):
        (binaries / name).symlink_to("rustup")
    _executable(home / ".rustup" / "toolchains" / TOOLCHAIN / "bin" / "cargo", CARGO)
    settings = f'version = "12"\nprofile = "default"\ndefault_toolchain = "{TOOLCHAIN}"\n\n[overrides]\n'
    lay(home, {".rustup/settings.toml": settings})


def _tools(home: Path) -> None:
    _environment(home / ".local/share/pipx/venvs/cow", Path(SYSTEM_PYTHON), "cow")
    (home / ".local/bin/cow").symlink_to(home / ".local/share/pipx/venvs/cow/bin/cow")
    _executable(home / ".local/share/agent/versions/1.2.3", "#!/bin/sh\necho agent works\n")
    (home / ".local/bin/agent").symlink_to("../share/agent/versions/1.2.3")
    _executable(home / ".local/bin/mine", "#!/bin/sh\necho mine works\n")
