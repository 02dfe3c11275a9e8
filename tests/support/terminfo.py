"""What terminfo(5) has programs send to a terminal: every string capability of an entry, with its numbers filled in."""

import re
import subprocess
from collections.abc import Callable, Sequence

_PADDING = re.compile(r"\$<[0-9.]+[*/]*>")
_LETTERS = {"E": 27, "e": 27, "n": 10, "l": 10, "r": 13, "t": 9, "b": 8, "f": 12, "s": 32, "a": 7}
_TOKEN = re.compile(
    r"%(?:p([1-9])|\{([0-9]+)\}|'(.)'|([:0-9.]*)([dxXo])|([a-zA-Z%?;=<>!&|+*/^~-]))|([^%]+)", re.DOTALL
)


def strings(terminal: str) -> dict[str, str]:
    """The string capabilities of a terminal's entry that are output; keys (k…) and answers (u6, u8) are input."""
    listed = subprocess.run(
        ["infocmp", "-1", "-x", terminal], capture_output=True, text=True, check=True, timeout=20
    )
    found = {}
    for name, value in re.findall(r"^\t([A-Za-z0-9]+)=(.*),$", listed.stdout, re.MULTILINE):
        if not name.startswith("k") and name not in ("u6", "u8", "xm", "rv", "xr", "PS", "PE"):
            found[name] = _PADDING.sub("", _plain(value))
    return found


def _plain(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        octal, letter, control = found.groups()
        if octal:
            return chr(int(octal, 8) & 255)
        if letter:
            return chr(_LETTERS.get(letter, ord(letter)))
        return "\x7f" if control == "?" else chr(ord(control) & 31)

    return re.sub(r"\\(?:([0-7]{3})|(.))|\^(.)", one, text)


_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left // (right or 1),
    "m": lambda left, right: left % (right or 1),
    "=": lambda left, right: int(left == right),
    "<": lambda left, right: int(left < right),
    ">": lambda left, right: int(left > right),
    "&": lambda left, right: left & right,
    "|": lambda left, right: left | right,
    "^": lambda left, right: left ^ right,
    "A": lambda left, right: int(bool(left and right)),
    "O": lambda left, right: int(bool(left or right)),
}


class _Filling:
    def __init__(self, values: Sequence[int]) -> None:
        self.values, self.stack, self.out = [*values], list[int](), list[str]()
        self.until, self.depth = "", 0  # what ends the part that is left out: "e" or ";"

    def skips(self, verb: str) -> bool:
        if not self.until:
            return False
        self.depth += (verb == "?") - (verb == ";")
        if self.depth < 0 or (self.depth == 0 and verb == self.until == "e"):
            self.until, self.depth = "", 0
        return True

    def push(self, number: str, constant: str, char: str) -> None:
        if number:
            self.stack.append(self.values[int(number) - 1])
        else:
            self.stack.append(int(constant) if constant else ord(char))

    def do(self, verb: str) -> None:
        if verb == "i":
            self.values[:2] = [value + 1 for value in self.values[:2]]
        elif verb in "sc":
            self.out.append(chr(self.stack.pop()) if verb == "c" else f"{self.stack.pop():x}"[0])
        elif verb == "%":
            self.out.append("%")
        elif verb == "t":
            self.until = "" if self.stack.pop() else "e"
        elif verb == "e":
            self.until = ";"
        elif verb == "!":
            self.stack.append(int(not self.stack.pop()))
        elif verb not in "?;":
            right, left = self.stack.pop(), self.stack.pop()
            self.stack.append(_OPERATORS[verb](left, right))


def filled(text: str, values: Sequence[int]) -> bytes:
    """tparm(3X): `text` with its parameters; a string is one letter."""
    filling = _Filling(values)
    for number, constant, char, _, form, verb, plain in _TOKEN.findall(text):
        if filling.skips(verb):
            continue
        if plain:
            filling.out.append(plain)
        elif form:
            filling.out.append(format(filling.stack.pop(), form))
        elif verb:
            filling.do(verb)
        else:
            filling.push(number, constant, char)
    return "".join(filling.out).encode("latin-1")
