"""The image of the launch path: used while it says what the sources say, never otherwise."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

FILES = {
    "__init__.py": "",
    "room/__init__.py": '"""A room."""\n',
    "room/part.py": "from jail.room import other\nVALUE = other.VALUE\nFILE = __file__\n",
    "room/other.py": "VALUE = 1\n",
}
RUN = """
import sys
sys.path.insert(0, sys.argv[1])
from jail import image
found = image.use(sys.argv[1] + "/jail")
if len(sys.argv) > 2: sys.modules[sys.argv[2]] = sys
from jail.room import part
assert part.FILE == sys.argv[1] + "/jail/room/part.py", part.FILE
assert sys.modules["jail.room"].__doc__ == "A room."
print(found, part.VALUE, type(part.__spec__.loader).__name__)
if not found: image.keep(sys.argv[1] + "/jail")
"""


@pytest.fixture
def root(tmp_path: Path, checkout: Path) -> Path:
    """A folder with a small package `jail` that has the real image.py."""
    for name, text in FILES.items():
        path = tmp_path / "jail" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="ascii")
    for name in ("image.py", "light.py"):
        (tmp_path / "jail" / name).write_bytes((checkout / "jail" / name).read_bytes())
    return tmp_path


def run(root: Path, *already: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-S", "-c", RUN, str(root), *already]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout.strip()


ORDINARY, FROM_IMAGE = "False 1 SourceFileLoader", "True 1 _Finder"


def image(root: Path) -> Path:
    return root / "jail" / "__pycache__" / f"launch.{sys.implementation.cache_tag}.image"


def test_the_second_launch_has_its_modules_from_the_image(root: Path) -> None:
    assert [run(root), run(root), run(root)] == [ORDINARY, FROM_IMAGE, FROM_IMAGE]
    assert [path.name for path in image(root).parent.iterdir() if path.suffix != ".pyc"] == [image(root).name]


def _edit(root: Path) -> None:
    path = root / "jail" / "room" / "other.py"
    path.write_text("VALUE = 7\n", encoding="ascii")
    os.utime(path, ns=(1, 1))


def _cut(root: Path) -> None:
    image(root).write_bytes(image(root).read_bytes()[:-9])


def _garbage(root: Path) -> None:
    image(root).write_bytes(b"\0 no image")


def _moved(root: Path) -> None:
    content = image(root).read_bytes()
    image(root).write_bytes(content.replace(str(root).encode(), str(root)[::-1].encode()))


def _gone(root: Path) -> None:
    (root / "jail" / "room" / "other.py").rename(root / "jail" / "room" / "part2.py")
    (root / "jail" / "room" / "part.py").write_text(
        "from jail.room.part2 import VALUE\nFILE = __file__\n", encoding="ascii"
    )


ODD: dict[str, tuple[Callable[[Path], None], str]] = {
    "a source was edited": (_edit, "False 7 SourceFileLoader"),
    "a source is gone": (_gone, ORDINARY),
    "it was cut": (_cut, ORDINARY),
    "it is garbage": (_garbage, ORDINARY),
    "it is of another place": (_moved, ORDINARY),
}


@pytest.mark.parametrize("case", ODD)
def test_an_image_that_is_odd_in_any_way_is_none_and_is_made_anew(case: str, root: Path) -> None:
    change, expected = ODD[case]
    assert [run(root), run(root)] == [ORDINARY, FROM_IMAGE]
    change(root)
    assert run(root) == expected
    assert run(root).startswith("True"), "made anew"


REPLACED = """
import os, sys
sys.path.insert(0, sys.argv[1])
from jail import image
from jail.room import part
kind = type(part.__spec__.loader)
read = kind.get_code
def get_code(self, name):
    code = read(self, name)
    if name == sys.argv[2]:
        path = sys.argv[1] + "/jail/room/other.py"
        with open(path + ".new", "w", encoding="ascii") as file:
            file.write("VALUE = 7\\n")
        os.utime(path + ".new", ns=(1, int(sys.argv[3])))
        os.rename(path + ".new", path)
    return code
kind.get_code = get_code
image.keep(sys.argv[1] + "/jail")
"""


@pytest.mark.parametrize("replaced_at", ["jail.room", "jail.room.other", "jail.room.part"])
def test_a_source_that_was_replaced_while_codes_were_read_makes_no_image(
    replaced_at: str, root: Path
) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-S", "-c", REPLACED, str(root), replaced_at, "1"]
    subprocess.run(command, env=environment, check=True, timeout=60)
    assert run(root) == "False 7 SourceFileLoader", "no image says that the value is 1 still"
    assert run(root) == "True 7 _Finder", "and what is as it was read makes one"


def test_a_launch_that_filled_caches_is_no_model(root: Path) -> None:
    assert [run(root, "jail.policy.parse"), run(root)] == [ORDINARY, ORDINARY]


def test_who_may_not_write_there_imports_as_ever(root: Path) -> None:
    image(root).parent.mkdir()
    image(root).mkdir()
    assert [run(root), run(root)] == [ORDINARY, ORDINARY]
    assert [path.name for path in image(root).parent.iterdir() if path.suffix != ".pyc"] == [image(root).name]
