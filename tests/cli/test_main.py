"""Every error of the command line, click's own too, is in jail's one form: what, where, what to do."""

from collections.abc import Callable

import pytest

from jail.cli import main
from jail.errors import EXIT_USAGE

WRONG = {
    # what is typed: (words of click's own that must be there, where, what to do)
    "nonsense": ("no such command;nonsense", "`jail`", "see `jail --help`"),
    "policy sho": ("no such command;sho", "`jail policy`", "write show, or see `jail policy --help`"),
    "run --nonsense -- true": ("no such option;--nonsense", "`jail run`", "see `jail run --help`"),
    "run --polic x true": (
        "no such option;--polic",
        "`jail run`",
        "write --hold or --policy, or see `jail run --help`",
    ),
    "run --policy": ("option;--policy;requires an argument", "`jail run`", "see `jail run --help`"),
    "run --gpu=1 true": ("option;--gpu;does not take a value", "`jail run`", "see `jail run --help`"),
    "run --": (
        "missing argument;COMMAND",
        "`jail run`, [--] COMMAND [ARGUMENT]...",
        "see `jail run --help`",
    ),
    "completion": (
        "missing argument;bash",
        "`jail completion`, SHELL",
        "see `jail completion --help`",
    ),
    "completion tcsh": (
        "'tcsh' is not one of;zsh",
        "`jail completion`, SHELL",
        "see `jail completion --help`",
    ),
    "policy check a b": (
        "got unexpected extra argument;b",
        "`jail policy check`",
        "see `jail policy check --help`",
    ),
    "policy check --user --project x": (
        "--user and --project exclude each other",
        "`jail policy check`",
        "see `jail policy check --help`",
    ),
}


@pytest.mark.parametrize("typed", WRONG)
def test_a_wrong_command_line_says_what_where_and_what_to_do(
    typed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    what, where, to_do = WRONG[typed]
    assert main.main(typed.split()) == EXIT_USAGE
    said, *rest = capsys.readouterr().err.splitlines()
    assert [word for word in what.split(";") if word not in said] == []
    assert said.startswith(f"jail: {what[0]}")
    assert not said.endswith((".", ":"))
    assert rest == [f"jail:   where: the command line of {where}", f"jail:   to do: {to_do}"]


def _raise(error: BaseException) -> Callable[[list[str]], int]:
    def failing(_arguments: list[str]) -> int:
        raise error

    return failing


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ImportError("no psutil", name="psutil"), 125, "jail: a part of jail is missing: psutil"),
        (PermissionError(13, "Permission denied", "/x"), 125, "jail:   where: /x: [Errno 13]"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_what_the_host_refuses_is_told_without_a_traceback(
    error: BaseException,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(main, "_main", _raise(error))
    assert main.main([]) == code
    shown = capsys.readouterr().err
    assert said in shown
    assert "Traceback" not in shown


def test_a_defect_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "_main", _raise(KeyError("ours")))
    with pytest.raises(KeyError):
        main.main([])
