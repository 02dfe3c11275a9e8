"""The reading of git's configuration files: as git reads them, and never looser."""

import random
import subprocess
from pathlib import Path

import pytest

from jail.hold import gitconfig
from jail.hold.gitconfig import ConfigError, Setting

GIT = "/usr/bin/git"
CLEAN = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1"}


def as_git_reads(content: bytes, folder: Path) -> list[tuple[str, str | None]] | None:
    (folder / "config").write_bytes(content)
    done = subprocess.run(
        [GIT, "-C", "/", "config", "--file", str(folder / "config"), "--no-includes", "--list", "-z"],
        env=CLEAN,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        return None
    pairs: list[tuple[str, str | None]] = []
    for item in done.stdout.decode("latin-1").split("\0")[:-1]:
        key, newline, value = item.partition("\n")
        pairs.append((key, value if newline else None))
    return pairs


def as_we_read(content: bytes) -> list[tuple[str, str | None]] | None:
    try:
        settings = gitconfig.parse(content)
    except ConfigError:
        return None
    return [(full(setting), setting.value) for setting in settings]


def full(setting: Setting) -> str:
    section, _, name = setting.key.partition(".")
    return f"{section}.{setting.subsection}.{name}" if setting.subsection else setting.key


@pytest.mark.parametrize(
    ("content", "settings"),
    [
        (b"[core]\n\tbare = false\n", [("core.bare", "false")]),
        (b"[core] bare = false", [("core.bare", "false")]),
        (b"[CORE]\nHooksPath = x", [("core.hookspath", "x")]),
        (b"[core]\n\thooksPath = a\\\n  b\n", [("core.hookspath", "a  b")]),
        (b'[core]\nhooksPath = " a"b # c', [("core.hookspath", " ab")]),
        (b'[remote "a b"]\nurl = x;y', [("remote.a b.url", "x")]),
        (b'[remote "a\\"]b"]\nurl=x', [('remote.a"]b.url', "x")]),
        (b"[Branch.Old]\nmerge = x", [("branch.old.merge", "x")]),
        (b"[core]\nbare\n", [("core.bare", None)]),
        (b"[core]\r\nbare = x\r\n", [("core.bare", "x")]),
        (b"\xef\xbb\xbf[core]\nbare = x", [("core.bare", "x")]),
        (b"# only a comment", []),
        (b"", []),
    ],
)
def test_settings_are_read_as_git_reads_them(
    content: bytes, settings: list[tuple[str, str | None]], tmp_path: Path
) -> None:
    assert as_we_read(content) == settings
    assert as_git_reads(content, tmp_path) == settings


@pytest.mark.parametrize(
    "content",
    [
        b"[core",
        b"[core]\nbare = \\x",
        b'[core]\nbare = "x',
        b"[core]\n= x",
        b"[co re]\nbare = x",
        b"[core]\nbare ? x",
    ],
)
def test_what_git_refuses_is_refused(content: bytes, tmp_path: Path) -> None:
    assert as_git_reads(content, tmp_path) is None
    with pytest.raises(ConfigError):
        gitconfig.parse(content)


def test_generated_files_are_read_as_git_reads_them_or_refused(tmp_path: Path) -> None:
    """git before 2.45 turns tabs in a value into spaces: compared without that difference."""
    pieces = b'[core]|[a.B]|[r "x"]|[r "\\"y"]|[|]|\n|\n\n| |\t|\r\n|\r|=| = |hooksPath|key|x-1|"|""'.split(
        b"|"
    )
    pieces += b"\\|\\\n|\\n|\\\\|\\q|#|; c|\x0b|\xff|/p".split(b"|")
    choice = random.Random(1)
    agreed = 0
    for _ in range(300):
        begin = choice.choice((b"", b"[core]\n", b"[core]\nkey = ", b'[r "'))
        content = begin + b"".join(choice.choice(pieces) for _ in range(choice.randrange(1, 14)))
        ours, theirs = as_we_read(content), as_git_reads(content, tmp_path)
        if ours is None:
            continue  # stricter is safe: what is refused is not trusted
        assert theirs is not None, content
        assert spaced(ours) == spaced(theirs), content
        agreed += 1
    assert agreed > 40


def spaced(pairs: list[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
    return [
        (key, None if value is None else value.replace("\t", " ").replace("\r", " ")) for key, value in pairs
    ]


def test_a_file_past_the_bound_is_refused() -> None:
    with pytest.raises(ConfigError, match="longer"):
        gitconfig.parse(b"#" * (gitconfig.CONFIG_BYTES + 1))


def test_what_git_init_clone_and_branches_write_is_plain(tmp_path: Path) -> None:
    env = {**CLEAN, "HOME": str(tmp_path)}

    def git(*arguments: str) -> None:
        subprocess.run([GIT, *arguments], cwd=tmp_path, env=env, check=True, capture_output=True)

    git("init", "origin")
    git("-C", "origin", "-c", "user.name=N", "-c", "user.email=e@x", "commit", "--allow-empty", "-m", "one")
    git("clone", "origin", "copy")
    git("-C", "copy", "config", "user.name", "A B")
    git("-C", "copy", "config", "user.email", "a@b.example")
    git("-C", "copy", "switch", "-c", "feature/x", "--track", "origin/HEAD")
    for name in ("origin", "copy"):
        assert gitconfig.offences((tmp_path / name / ".git/config").read_bytes()) == ()


RUNS = [
    (b"[core]\n\tfsmonitor = x", "core.fsmonitor"),
    (b"[core]\n\thooksPath = x", "core.hookspath"),
    (b"[core]\n\tsshCommand = x", "core.sshcommand"),
    (b"[core]\n\tpager = x", "core.pager"),
    (b"[core]\n\teditor = x", "core.editor"),
    (b"[core]\n\tworktree = /", "core.worktree"),
    (b'[diff "x"]\n\ttextconv = x', "diff.x.textconv"),
    (b"[diff]\n\texternal = x", "diff.external"),
    (b'[filter "x"]\n\tclean = x', "filter.x.clean"),
    (b'[filter "x"]\n\tprocess = x', "filter.x.process"),
    (b"[credential]\n\thelper = x", "credential.helper"),
    (b"[alias]\n\tst = !x", "alias.st"),
    (b"[gpg]\n\tprogram = x", "gpg.program"),
    (b"[include]\n\tpath = x", "include.path"),
    (b'[includeIf "gitdir:/"]\n\tpath = x', "includeif.gitdir:/.path"),
    (b"[uploadpack]\n\tpackObjectsHook = x", "uploadpack.packobjectshook"),
    (b'[url "x"]\n\tinsteadOf = y', "url.x.insteadof"),
    (b'[remote "o"]\n\tuploadpack = x', "remote.o.uploadpack"),
    (b'[remote "o"]\n\turl = ext::sh -c x', "remote.o.url"),
    (b'[remote "o"]\n\turl = e"xt:":sh', "remote.o.url"),
    (b'[remote "o"]\n\turl = --upload-pack=x', "remote.o.url"),
    (b'[branch "b"]\n\tremote = ext::x', "branch.b.remote"),
    (b'[branch "b"]\n\tmergeOptions = -s x', "branch.b.mergeoptions"),
    (b'[submodule "s"]\n\tupdate = !x', "submodule.s.update"),
    (b"[extensions]\n\tworktreeConfig = true", "extensions.worktreeconfig"),
    (b"[core]\n\tbare = $(x)", "core.bare"),
    (b"[core]\n\tbare", "core.bare"),
    (b'[core "x"]\n\tfsmonitor = y', "core.x.fsmonitor"),
    (b"[user]\n\tname = a\\\n[core]\n\tfsmonitor = x", "a backslash or control character"),
    (b"[user]\n\tname = a\x0b", "a backslash or control character"),
    (b"[user]\r\n\tname = a\r\n", "a backslash or control character"),
    (b"[user\n", "section in line 1"),
]


@pytest.mark.parametrize(("content", "said"), RUNS, ids=[said for _, said in RUNS])
def test_each_key_that_runs_or_redirects_is_named(content: bytes, said: str) -> None:
    assert gitconfig.offences(b"[core]\n\tbare = false\n" + content)[0].startswith(
        said.partition(" in line")[0]
    )


def test_a_plain_file_past_its_bound_is_not_plain() -> None:
    assert gitconfig.offences(b"#\n" * gitconfig.PLAIN_BYTES)
