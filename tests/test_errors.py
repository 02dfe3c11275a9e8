"""The one form of errors: what, where, what to do; and that every error in the source keeps to it."""

import ast
from collections.abc import Iterator

import pytest

from jail.errors import IGNORABLE, JailError, bug, printable
from support.installed import CHECKOUT

RAISED = {"JailError"}
"""click's own are brought into the form by cli/main.py."""
PROPER = ("SIG", "HOME", "SESSION", "FILE", "Landlock", "DEFECT")
"""Names with which an error may begin, though it begins with no capital."""


def test_the_three_parts_are_a_line_each_and_safe_to_print() -> None:
    error = JailError("no \x1b[2J", where="a\nb", hint="try\u202e")
    assert error.lines() == ["no \\x1b[2J", "  where: a", "b", "  to do: try\\u202e"]
    assert JailError("alone").lines() == ["alone"]
    assert bug("x").lines()[0] == "defect in jail: x"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, Ünïcode", "plain, Ünïcode"),
        ("\t\x7f\x9b", "\\x09\\x7f\\x9b"),
        ("\u200b\u2066", "\\u200b\\u2066"),
        ("\udcff", "\\xff"),
        ("\U000e0001", "\\U000e0001"),
        # what has no width or no ink: two names that differ in it look alike
        ("\u3164\u034f\ufe0f\u2060", "\\u3164\\u034f\\ufe0f\\u2060"),
        ("\u115f\u17b4\u180b\uffa0\u2800", "\\u115f\\u17b4\\u180b\\uffa0\\u2800"),
    ],
)
def test_nothing_that_steers_a_terminal_passes(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_no_character_passes_that_a_file_system_ignores_in_a_name() -> None:
    assert not [code for code in IGNORABLE if printable(chr(code)) == chr(code)]


def _text(node: ast.expr | None) -> str:
    """A string as far as it is written out; what is filled in is `…`."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    return "…"


def _errors() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Place, message, and the other parts, of each error that the source makes."""
    for path in sorted((CHECKOUT / "jail").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(
                getattr(node, "func", None), "id", getattr(getattr(node, "func", None), "attr", "")
            )
            if isinstance(node, ast.Call) and name in RAISED and node.args:
                parts = {each.arg or "**": _text(each.value) for each in node.keywords}
                yield f"{path.relative_to(CHECKOUT)}:{node.lineno}", _text(node.args[0]), parts


def test_every_error_of_the_source_is_in_that_form() -> None:
    found = list(_errors())
    assert len(found) > 40
    wrong = [
        f"{where}: {message}"
        for where, message, _ in found
        if message.endswith((".", "?", "!")) or (message[:1].isupper() and not message.startswith(PROPER))
    ]
    assert wrong == []


def test_what_to_do_is_no_question() -> None:
    asked = [f"{where}: {parts['hint']}" for where, _, parts in _errors() if "?" in parts.get("hint", "")]
    assert asked == []
