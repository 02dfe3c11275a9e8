"""What the installed command `jail` starts, as `python -I -S …/jail/__main__.py`.

Rule: until the line that imports `jail.cli`, only frozen modules (os, sys) are used, and sys.path gets the
folder that jail itself was installed in and no other that a caller could name. Why: under `-I -S` sys.path
holds the standard library alone, so a planted tomllib.py, jail/ or sitecustomize.py cannot be found, whatever
the current folder and the environment are.
"""

import os
import sys


def installed_folders(main: str) -> list[str]:
    """The folders that jail and its libraries may be imported from, given the path of this file.

    The folder that holds jail/; where the interpreter keeps compiled modules apart (sys.platlibdir, lib64 on
    Fedora), that one too. Where jail lies outside the interpreter's own prefix (`pip install --user`,
    Debian's /usr/local), pip took a library that the system has already as installed, hence the system's own
    package folders last: they belong to root, as the interpreter does. sys.prefix cannot tell: without
    `site`, a virtual environment's is the system's (until Python 3.14).
    """
    own = os.path.realpath(os.path.dirname(os.path.dirname(main)))
    folders = [own]
    if sys.platlibdir != "lib":
        folders.append(f"/{sys.platlibdir}/".join(own.rsplit("/lib/", 1)))
    prefix = os.path.dirname(os.path.realpath(os.path.dirname(sys.executable)))
    if not own.startswith(f"{prefix}/lib"):
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        folders += [
            f"{prefix}/{sys.platlibdir}/{version}/site-packages",
            f"{prefix}/lib/{version}/site-packages",
            f"{prefix}/local/lib/{version}/dist-packages",
            f"{prefix}/lib/python3/dist-packages",
        ]
    return list(dict.fromkeys(folders))


def _leave(code: int) -> None:
    """End at once: taking a whole interpreter apart first is time that every launch would pay for."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        code = code or 125  # whoever read our output has gone
    os._exit(code)


def start() -> int:
    """Import the command line and run it; the exit code of `jail`."""
    if not (sys.flags.isolated and sys.flags.no_site):
        sys.stderr.write(
            "jail: started by a Python that obeys the current folder and the environment\n"
            "jail:   where: python -m jail, or python jail/__main__.py\n"
            "jail:   to do: start the command jail itself; from a checkout: scripts/jail\n"
        )
        return 125
    sys.path += installed_folders(__file__)
    from jail import image

    package = os.path.dirname(os.path.realpath(__file__))
    found = image.use(package)
    from jail.cli import main

    code = main.main(sys.argv[1:])
    if not found and sys.argv[1:2] == ["run"]:
        image.keep(package)
    return code


if __name__ == "__main__":
    _leave(start())
