"""Errors for people, and the exit codes of `jail`, in one place.

Rule: an error that reaches a person says what went wrong, where (file and key, or call and errno) and what to
do; a traceback means a defect of ours. Exit codes below 120 other than EXIT_USAGE and EXIT_CANNOT_ISOLATE are
always the command's own, as with env(1) and timeout(1).
"""

import sys

from jail.light import Final

EXIT_USAGE: Final = 2
"""The command line of jail was wrong; nothing ran."""
EXIT_CANNOT_ISOLATE: Final = 78
"""This host cannot give a wall that the policy asks for (EX_CONFIG of sysexits.h); nothing ran."""
EXIT_TIMEOUT: Final = 124
"""The command was ended because its time was over, as timeout(1) says it."""
EXIT_JAIL: Final = 125
"""jail itself failed; what ran inside is dead."""
EXIT_NOT_EXECUTABLE: Final = 126
EXIT_NOT_FOUND: Final = 127
EXIT_SIGNAL_BASE: Final = 128
"""A command that died of signal n gives 128+n."""


class JailError(Exception):
    """A failure with an answer for a person.

    `where` names the file and key, or the call and errno; `hint` says what to do; `code` is the exit code.
    """

    def __init__(self, message: str, *, where: str = "", hint: str = "", code: int = EXIT_JAIL) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        self.code = code

    def lines(self) -> list[str]:
        """The error as lines: message, where, hint; each safe to print on a terminal."""
        shown = [self.message]
        if self.where:
            shown.append(f"  where: {self.where}")
        if self.hint:
            shown.append(f"  to do: {self.hint}")
        return [printable(line) for text in shown for line in text.split("\n")]


def bug(message: str) -> JailError:
    """A state that cannot be: labelled as our defect, so that nobody searches the host for it."""
    return JailError(f"defect in jail: {message}", hint="please report this with the command that you ran")


def printable(text: str) -> str:
    r"""`text` with everything that could steer a terminal or reorder a line escaped.

    Control characters (C0, C1, DEL), line and paragraph separators, bidirectional and zero-width marks and
    bytes that are not UTF-8 (surrogates of PEP 383) become \x1b, \u202e and the like. Plain text passes
    unchanged.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_escape, text))


def _escape(char: str) -> str:
    code = ord(char)
    if char.isprintable() and code not in _INVISIBLE:
        return char
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_IGNORABLE_RANGES: Final = (
    "ad-ad 34f-34f 61c-61c 115f-1160 17b4-17b5 180b-180f 200b-200f 202a-202e 2060-206f 3164-3164 fe00-fe0f"
    " feff-feff ffa0-ffa0 fff0-fff8 1bca0-1bca3 1d173-1d17a e0000-e01ff"
)
"""Default_Ignorable_Code_Point of Unicode 12 (what the kernel's fs/unicode has), the upper plane as far as it
is assigned.
"""
IGNORABLE: Final = frozenset(
    code
    for first, last in (ends.split("-") for ends in _IGNORABLE_RANGES.split())
    for code in range(int(first, 16), int(last, 16) + 1)
)
_INVISIBLE: Final = IGNORABLE | {0x2800}
"""Marks that change the order of a line (Bidi_Control, Unicode UAX #9), have no width or no ink: two names
that differ in them look alike.
"""


def report(error: JailError) -> None:
    """Print `error` to standard error, in jail's one form."""
    for line in error.lines():
        say(line)


def say(message: str) -> None:
    """One line for a person, on standard error; whoever reads it may be gone, which changes nothing."""
    try:
        sys.stderr.write(printable(f"jail: {message}") + "\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return  # closed from the start, or its reader has gone
