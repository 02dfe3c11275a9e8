import io
import sys

import pytest

from jail.cli.show import moment, show


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [("utf-8", "é…\\x1b[2J\\u202e\\xff"), ("ascii", "\\xe9\\u2026\\x1b[2J\\u202e\\xff")],
)
def test_no_text_steers_a_terminal_or_fails_on_one(
    monkeypatch: pytest.MonkeyPatch, encoding: str, shown: str
) -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding=encoding, errors="strict", write_through=True)
    monkeypatch.setattr(sys, "stdout", out)
    show("é…\x1b[2J\u202e\udcff")
    out.flush()
    assert raw.getvalue().decode(encoding) == shown + "\n"


def test_tabs_stay_where_a_text_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    show("+\t$(CC)\t\x1b[2J", tabs=True)
    show("a\tname")
    assert out.getvalue() == "+\t$(CC)\t\\x1b[2J\na\\x09name\n"


class Screen(io.StringIO):
    """A terminal that remembers."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("screen", "environment", "shown"),
    [
        (Screen(), {}, "  \x1b[31mNOT HELD\x1b[0m  NOT HELD \\x1b[2J\n"),
        (Screen(), {"NO_COLOR": "1"}, "  NOT HELD  NOT HELD \\x1b[2J\n"),
        (Screen(), {"NO_COLOR": ""}, "  \x1b[31mNOT HELD\x1b[0m  NOT HELD \\x1b[2J\n"),
        (io.StringIO(), {}, "  NOT HELD  NOT HELD \\x1b[2J\n"),
    ],
    ids=["a terminal", "NO_COLOR", "NO_COLOR that is empty", "a file"],
)
def test_a_word_has_a_colour_on_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, screen: io.StringIO, environment: dict[str, str], shown: str
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", screen)
    show("  NOT HELD  NOT HELD \x1b[2J", word="NOT HELD", colour="red")
    assert screen.getvalue() == shown


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "1970-01-01 00:00:00"), (1796034632.47, "2026-11-30 10:30:32"), (1e300, "?"), (float("inf"), "?")],
)
def test_a_moment_is_utc_and_never_fails(seconds: float, text: str) -> None:
    assert moment(seconds) == text
