"""The house rules of DESIGN.md ("The house") that can be read from the source, as tests."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from jail.plan.protected import PROTECTED
from support.installed import CHECKOUT

ROOMS = "cli loop agents launch egress outbox hold ledger evidence report plan policy kernel errors image light".split()
"""From the top down: a room may import itself and what stands to its right."""
PURE_ROOMS = ("evidence", "report", "plan")
ASKS_THE_HOST = frozenset(
    "ctypes fcntl glob importlib io multiprocessing pathlib psutil random resource select shutil signal "
    "socket subprocess tempfile threading time urllib".split()
)
"""Modules through which a pure room could learn of the host, or change it."""
PURE_PARTS_OF_OS = frozenset("path fsencode fsdecode fspath sep".split())
PURE_PARTS_OF_OS_PATH = frozenset(
    "join basename dirname split splitext normpath isabs commonpath relpath sep".split()
)
MOST_LINES = 350
FORBIDDEN_CALLS = {
    "os.system": "a shell reads the agent's bytes; give an argument list to a program by absolute path",
    "os.popen": "as os.system",
    "ctypes.util.find_library": "starts ldconfig or gcc from PATH; name the library's soname",
    "find_library": "as ctypes.util.find_library",
    "subprocess.getoutput": "as os.system",
    "subprocess.getstatusoutput": "as os.system",
}
STARTS_PROGRAMS = frozenset("Popen run call check_call check_output create_subprocess_exec".split())

SOURCES = sorted((CHECKOUT / "jail").rglob("*.py"))
SOURCE_NAMES = [str(path.relative_to(CHECKOUT)) for path in SOURCES]


def parsed(name: str) -> ast.Module:
    return ast.parse((CHECKOUT / name).read_text(encoding="utf-8"), name)


def imports(name: str) -> Iterator[tuple[int, str]]:
    """Line and absolute module of every import in `name`, those inside functions too."""
    package = list(Path(name).parent.parts)
    for node in ast.walk(parsed(name)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*start, *([node.module] if node.module else [])])
            # `from jail import policy` names the room in the alias, `from jail.policy import load` before it.
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "jail" else [module]
            yield from ((node.lineno, found) for found in names)


def room_of(name: str) -> str:
    parts = Path(name).with_suffix("").parts
    return parts[1]


def room_of_import(module: str) -> str | None:
    """The room of jail that `module` lies in; None for other packages and for jail's version."""
    parts = module.split(".")
    return parts[1] if parts[0] == "jail" and len(parts) > 1 and parts[1] != "__version__" else None


def dotted(node: ast.expr) -> str:
    """`a.b.c` for an attribute chain, else the empty string."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (start := dotted(node.value)):
        return f"{start}.{node.attr}"
    return ""


def test_the_table_names_every_room_that_exists() -> None:
    rooms = {room_of(name) for name in SOURCE_NAMES} - {"__init__", "__main__"}
    assert rooms <= set(ROOMS)


@pytest.mark.parametrize("name", SOURCE_NAMES)
def test_imports_go_downward(name: str) -> None:
    own = room_of(name)
    allowed = (
        ROOMS[ROOMS.index(own) :] if own in ROOMS else {"__init__": [], "__main__": ["cli", "image"]}[own]
    )
    wrong = [
        f"{name}:{line} imports {module}"
        for line, module in imports(name)
        if (room := room_of_import(module)) and room not in allowed
    ]
    assert not wrong


@pytest.mark.parametrize("name", [name for name in SOURCE_NAMES if room_of(name) in PURE_ROOMS])
def test_pure_rooms_ask_the_host_nothing(name: str) -> None:
    wrong = [
        f"{name}:{line} imports {module}"
        for line, module in imports(name)
        if module.split(".")[0] in ASKS_THE_HOST or module in ("os.path", "jail.kernel.libc")
    ]
    for node in ast.walk(parsed(name)):
        if not isinstance(node, ast.expr):
            continue
        call = dotted(node) if isinstance(node, ast.Attribute) else ""
        if call.startswith("os.path."):
            impure = call.split(".")[2] not in PURE_PARTS_OF_OS_PATH
        else:
            impure = call.startswith("os.") and call.split(".")[1] not in PURE_PARTS_OF_OS
        if impure or (isinstance(node, ast.Call) and dotted(node.func) == "open"):
            wrong.append(f"{name}:{node.lineno} uses {call or 'open'}")
    assert not wrong


@pytest.mark.parametrize("name", SOURCE_NAMES)
def test_no_star_import(name: str) -> None:
    stars = [
        f"{name}:{node.lineno}"
        for node in ast.walk(parsed(name))
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)
    ]
    assert not stars


@pytest.mark.parametrize("name", [name for name in SOURCE_NAMES if name.endswith("__init__.py")])
def test_init_holds_no_logic(name: str) -> None:
    allowed = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
    body = parsed(name).body
    assert ast.get_docstring(parsed(name))
    assert [type(node).__name__ for node in body[1:] if not isinstance(node, allowed)] == []
    calls = [node.lineno for node in ast.walk(parsed(name)) if isinstance(node, ast.Call)]
    assert not calls


@pytest.mark.parametrize("name", SOURCE_NAMES)
def test_every_module_says_its_rule(name: str) -> None:
    assert ast.get_docstring(parsed(name))


@pytest.mark.parametrize("name", SOURCE_NAMES)
def test_a_file_holds_one_topic(name: str) -> None:
    lines = len((CHECKOUT / name).read_text(encoding="utf-8").splitlines())
    assert lines <= MOST_LINES, f"{name} has {lines} lines: which two topics are these?"


@pytest.mark.parametrize("name", SOURCE_NAMES)
def test_only_what_a_reader_can_find_is_cited(name: str) -> None:
    """No catalogue outside of the repository: a CVE, a man page, a header or a document here instead."""
    text = (CHECKOUT / name).read_text(encoding="utf-8")
    cited = re.findall(r"\b[A-Z]{4,}\.md\b|\bcases? [A-J][0-9]+\b", text)
    here = {path.name for path in CHECKOUT.glob("*.md")} | {row.name for row in PROTECTED}
    assert [each for each in cited if each not in here] == []


@pytest.mark.parametrize("name", SOURCE_NAMES)
def test_nothing_is_given_to_a_shell(name: str) -> None:
    wrong = []
    for node in ast.walk(parsed(name)):
        if isinstance(node, ast.Call):
            reason = FORBIDDEN_CALLS.get(dotted(node.func))
            shell = [
                word
                for word in node.keywords
                if dotted(node.func).rpartition(".")[2] in STARTS_PROGRAMS
                and word.arg == "shell"
                and not (isinstance(word.value, ast.Constant) and word.value.value is False)
            ]
            if reason or shell:
                wrong.append(f"{name}:{node.lineno} {dotted(node.func)}: {reason or 'shell='}")
        elif isinstance(node, ast.ImportFrom) and node.module == "ctypes.util":
            wrong.append(f"{name}:{node.lineno} ctypes.util: {FORBIDDEN_CALLS['find_library']}")
    assert not wrong


def test_the_start_imports_only_frozen_modules_before_jail() -> None:
    modules = [module for _, module in imports("jail/__main__.py")]
    assert modules == ["os", "sys", "jail.image", "jail.cli"]


def test_scripts_look_nothing_up_at_the_start() -> None:
    """The installed entry names every program by absolute path: PATH may lead into the workspace."""
    text = (CHECKOUT / "scripts/installed/jail").read_text(encoding="utf-8")
    code = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    assert not [line for line in code if "`" in line or "command -v" in line or "PATH=" in line]
    assert [line for line in code if "$(" in line] == ['self=$("$readlink" -f -- "$self") || exit 125']
