"""Keys of a held git config: which are offered, which never arrive, and how they come into the host's file."""

import os
import subprocess
from pathlib import Path

import pytest

from jail.errors import JailError
from jail.hold import gitconfig, gitkeys, hostgit
from jail.hold.gitkeys import Keys, Offered, compared, conflicts, merged

BASE = b"""\
[core]
\trepositoryformatversion = 0
\tbare = false
[remote "origin"]
\turl = https://example.org/a.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
\tremote = origin
\tmerge = refs/heads/main
"""

OFFERED = {
    '[branch "new"]\n\tremote = origin\n': [Offered("branch.new.remote", (), ("origin",))],
    '[branch "new"]\n\tremote = .\n': [Offered("branch.new.remote", (), (".",))],
    '[branch "a/b.c"]\n\tmerge = refs/heads/x\n': [Offered("branch.a/b.c.merge", (), ("refs/heads/x",))],
    '[branch "caf\u00e9"]\n\tremote = origin\n': [Offered("branch.caf\u00e9.remote", (), ("origin",))],
    '[branch "new"]\n\tREBASE = Merges\n': [Offered("branch.new.rebase", (), ("Merges",))],
    '[branch "new"]\n\tpushremote = fork\n': [Offered("branch.new.pushRemote", (), ("fork",))],
    '[branch "new"]\n\tdescription = "one\\n\\ttwo # \\"x\\""\n': [
        Offered("branch.new.description", (), ('one\n\ttwo # "x"',))
    ],
    "[branch.old]\n\tremote = origin\n": [Offered("branch.old.remote", (), ("origin",))],
    '[remote "fork"]\n\turl = git@example.org:a.git\n': [
        Offered("remote.fork.url", (), ("git@example.org:a.git",))
    ],
    '[remote "fork"]\n\turl = /srv/a\n\turl = ../b\n': [Offered("remote.fork.url", (), ("/srv/a", "../b"))],
    '[remote "fork"]\n\turl = ssh://example.org:22/a\n': [
        Offered("remote.fork.url", (), ("ssh://example.org:22/a",))
    ],
    '[remote "origin"]\n\tfetch = +refs/pull/*/head:refs/remotes/origin/pr/*\n': [
        Offered(
            "remote.origin.fetch",
            ("+refs/heads/*:refs/remotes/origin/*",),
            ("+refs/heads/*:refs/remotes/origin/*", "+refs/pull/*/head:refs/remotes/origin/pr/*"),
        )
    ],
    '[remote "origin"]\n\tfetch = ^refs/heads/x\n': [
        Offered(
            "remote.origin.fetch",
            ("+refs/heads/*:refs/remotes/origin/*",),
            ("+refs/heads/*:refs/remotes/origin/*", "^refs/heads/x"),
        )
    ],
    '[submodule "libs/a b"]\n\turl = ../lib\n\tactive = true\n': [
        Offered("submodule.libs/a b.url", (), ("../lib",)),
        Offered("submodule.libs/a b.active", (), ("true",)),
    ],
}


@pytest.mark.parametrize("added", OFFERED)
def test_keys_of_branches_remotes_and_submodules_are_offered(added: str) -> None:
    assert compared(BASE, BASE + added.encode()) == Keys(tuple(OFFERED[added]), ())


NEVER = """
core.fsmonitor core.sshcommand core.hookspath core.pager core.editor core.worktree core.attributesfile core.bare
alias.x filter.f.clean filter.f.smudge filter.f.process diff.d.textconv diff.d.command diff.external
merge.m.driver include.path includeif.gitdir:/.path url.https://e/.insteadof url.x.pushinsteadof
credential.helper credential.https://e.helper gpg.program gpg.ssh.program uploadpack.packobjectshook
user.name user.signingkey http.proxy http.https://e.extraheader protocol.allow protocol.ext.allow
remote.origin.uploadpack remote.origin.receivepack remote.origin.vcs remote.origin.proxy remote.origin.mirror
remote.origin.pushurl remote.pushdefault branch.main.mergeoptions branch.main.vscode-merge-base
branch.autosetupmerge submodule.s.update submodule.recurse submodule.active submodule.s.branch
extensions.worktreeconfig extensions.partialclone sequence.editor interactive.difffilter trace2.eventtarget
safe.directory init.templatedir push.gpgsign browser.b.cmd man.m.cmd difftool.d.cmd mergetool.m.cmd
""".split()


@pytest.mark.parametrize("key", NEVER)
def test_no_other_key_is_ever_offered_and_each_is_named(key: str) -> None:
    section, _, rest = key.partition(".")
    subsection, _, name = rest.rpartition(".")
    head = f'[{section} "{subsection}"]' if subsection else f"[{section}]"
    for value in ("!touch ran", "true", "origin"):
        found = compared(BASE, BASE + f"{head}\n\t{name} = {value}\n".encode())
        assert found.offered == ()
        assert found.refused == (key,)


@pytest.mark.parametrize("key", ["core.bare", "core.repositoryformatversion"])
def test_a_removed_or_changed_key_beyond_the_offered_is_named_too(key: str) -> None:
    lines = [line for line in BASE.decode().splitlines(keepends=True) if key.partition(".")[2] not in line]
    assert compared(BASE, "".join(lines).encode()) == Keys((), (key,))


NOT_PLAIN = {
    "a helper's URL": '[remote "r"]\n\turl = ext::sh -c id\n',
    "a scheme that git has a helper for": '[remote "r"]\n\turl = ext://sh\n',
    "an unknown scheme": '[remote "r"]\n\turl = evil://x\n',
    "an option as URL": '[remote "r"]\n\turl = --upload-pack=id\n',
    "an option as host": '[remote "r"]\n\turl = ssh://-oProxyCommand=id/x\n',
    "a control character": '[remote "r"]\n\turl = "a\\tb"\n',
    "an escape sequence": '[remote "r"]\n\turl = "a\x1b[2Jb"\n',
    "a bidirectional override": '[remote "r"]\n\turl = "https://e/\u202egpj.a"\n',
    "no value": '[remote "r"]\n\turl\n',
    "an empty value": '[remote "r"]\n\turl =\n',
    "a long value": f'[remote "r"]\n\turl = {"a" * 9000}\n',
    "one of two": '[remote "r"]\n\turl = /srv/a\n\turl = ext::id\n',
    "a remote named as a URL": '[remote "https://github.com/a/b"]\n\turl = https://evil.example/x\n',
    "a remote named as a scp URL": '[remote "git@github.com:a"]\n\turl = https://evil.example/x\n',
    "a remote named as a path": '[remote "/srv/a"]\n\turl = https://evil.example/x\n',
    "a remote named as a path above": '[remote "../a"]\n\turl = https://evil.example/x\n',
    "a remote named as an option": '[remote "-x"]\n\turl = https://e/x\n',
    "a remote with a bidirectional name": '[remote "a\u202eb"]\n\turl = https://e/x\n',
    "a fetch over branches": '[remote "r"]\n\tfetch = +refs/heads/*:refs/heads/*\n',
    "a fetch over everything": '[remote "r"]\n\tfetch = +refs/*:refs/*\n',
    "a fetch upwards": '[remote "r"]\n\tfetch = +refs/heads/*:refs/remotes/../heads/*\n',
    "a fetch from above": '[remote "r"]\n\tfetch = +refs/../x:refs/remotes/r/x\n',
    "a fetch that is an option": '[remote "r"]\n\tfetch = --upload-pack=id\n',
    "a branch's remote as helper": '[branch "b"]\n\tremote = ext::id\n',
    "a branch's remote as option": '[branch "b"]\n\tremote = -x\n',
    "a push remote as helper": '[branch "b"]\n\tpushRemote = fd::7\n',
    "a branch's merge as option": '[branch "b"]\n\tmerge = -x\n',
    "a rebase that is no choice": '[branch "b"]\n\trebase = !id\n',
    "a description with an escape": '[branch "b"]\n\tdescription = "\x1b]0;x"\n',
    "a submodule named upwards": '[submodule "../../x"]\n\turl = /srv/a\n',
    "a submodule that is active by a word": '[submodule "s"]\n\tactive = maybe\n',
    "not UTF-8": '[remote "r"]\n\turl = /srv/\udcff\n',
}


@pytest.mark.parametrize("case", NOT_PLAIN)
def test_a_value_or_name_that_is_not_plain_is_refused_by_name(case: str) -> None:
    found = compared(BASE, BASE + NOT_PLAIN[case].encode("utf-8", "surrogateescape"))
    assert found.offered == ()
    assert len(found.refused) == 1
    assert found.refused[0].endswith("(its value is not plain)")


def test_a_newline_in_a_section_is_refused_as_git_refuses_it() -> None:
    found = compared(BASE, BASE + b'[remote "a\nb"]\n\turl = x\n')
    assert found.offered == ()
    assert "section in line" in found.refused[0]


@pytest.mark.parametrize(
    "new", [b"[core", b"\0", b"x" * (gitconfig.CONFIG_BYTES + 1), b'[branch "b"]\n\tremote = "o\n', b"= x\n"]
)
def test_of_a_copy_that_cannot_be_read_nothing_is_offered_and_that_is_said(new: bytes) -> None:
    found = compared(BASE, new)
    assert found.offered == ()
    assert len(found.refused) == 1
    assert "all of it" in found.refused[0]


def test_an_unchanged_config_offers_nothing_in_whatever_order_and_form_it_is() -> None:
    other = BASE.replace(b"\n", b"\r\n").replace(b'[remote "origin"]', b'# x\r\n[Remote "origin"] ; y')
    assert compared(BASE, other) == Keys((), ())


def test_duplicated_sections_are_read_as_git_reads_them() -> None:
    new = BASE + b'[branch "main"]\n\tremote = fork\n[branch "main"]\n\tremote = other\n'
    (found,) = compared(BASE, new).offered
    assert found == Offered("branch.main.remote", ("origin",), ("origin", "fork", "other"))


def test_ten_thousand_branches_are_compared_in_one_go() -> None:
    many = b"".join(b'[branch "b%d"]\n\tremote = origin\n\tx%d = 1\n' % (n, n) for n in range(10_000))
    found = compared(BASE, BASE + many)
    assert len(found.offered) == len(found.refused) == 10_000
    with pytest.raises(JailError, match="more than"):
        merged(BASE, found.offered)


# Merged into the host's file.


def git_says(config: bytes, folder: Path) -> list[str]:
    """What the host's git reads in a config."""
    (folder / "said").write_bytes(config)
    done = subprocess.run(
        ["/usr/bin/git", "config", "--file", folder / "said", "--list"],
        capture_output=True,
        check=True,
        cwd="/",
    )
    return done.stdout.decode().splitlines()


HOST = (
    BASE
    + b"""\
# the person's
[user]
\tname = Ada ; a comment
[alias]
\tst = status
"""
)

MERGED = {
    "remote add": ('[remote "fork"]\n\turl = https://e/x\n\tfetch = +refs/heads/*:refs/remotes/fork/*\n', 2),
    "push -u": ('[branch "topic"]\n\tremote = origin\n\tmerge = refs/heads/topic\n', 2),
    "submodule add": ('[submodule "s"]\n\turl = /srv/s\n\tactive = true\n', 2),
    "a value to be quoted": ('[branch "t"]\n\tdescription = "a # b; \\"c\\"\\n  d "\n', 1),
    "two values": ('[remote "two"]\n\turl = /srv/a\n\turl = /srv/b\n', 1),
    "a name with a dot": ('[branch "v1.2"]\n\tremote = origin\n', 1),
    "a name in letters of another script": ('[branch "\u0436"]\n\tremote = origin\n', 1),
}


@pytest.mark.parametrize("case", MERGED)
def test_what_is_offered_comes_into_the_hosts_current_file(case: str, tmp_path: Path) -> None:
    added, count = MERGED[case]
    offered = compared(BASE, BASE + added.encode()).offered
    assert len(offered) == count
    assert git_says(merged(HOST, offered), tmp_path) == git_says(HOST + added.encode(), tmp_path)
    assert merged(HOST, offered).startswith(HOST)


def test_a_renamed_branch_is_renamed_in_the_hosts_file() -> None:
    offered = compared(BASE, BASE.replace(b'"main"', b'"trunk"')).offered
    assert len(offered) == 4
    after = merged(HOST, offered)
    assert b'[branch "trunk"]\n\tremote = origin\n\tmerge = refs/heads/main\n' in after
    assert {setting.subsection for setting in gitconfig.parse(after)} == {"", "origin", "trunk"}


def test_a_removed_remote_is_removed_and_what_is_not_offered_of_it_stays() -> None:
    host = HOST.replace(b"\turl = https", b"\tproxy = x\n\turl = https")
    offered = compared(
        BASE, BASE.partition(b"[remote")[0] + b"[branch" + BASE.partition(b"[branch")[2]
    ).offered
    assert [each.key for each in offered] == ["remote.origin.url", "remote.origin.fetch"]
    after = merged(host, offered)
    assert [setting for setting in gitconfig.parse(after) if setting.key.startswith("remote.")] == [
        gitconfig.Setting("remote.proxy", "origin", "x")
    ]


def test_nothing_of_what_was_refused_comes_along() -> None:
    new = BASE + b'[core]\n\tfsmonitor = x\n[alias]\n\tx = !id\n[remote "r"]\n\turl = /srv/r\n\tvcs = ext\n'
    found = compared(BASE, new)
    assert found.refused == ("core.fsmonitor", "alias.x", "remote.r.vcs")
    after = merged(HOST, found.offered)
    assert b"/srv/r" in after
    assert not [word for word in (b"fsmonitor", b"!id", b"vcs") if word in after]


def test_what_the_host_has_already_is_left_alone() -> None:
    new = BASE + b'[branch "b"]\n\tremote = origin\n'
    offered = compared(BASE, new).offered
    assert merged(new, offered) == new
    assert merged(merged(HOST, offered), offered) == merged(HOST, offered)


def test_a_key_that_the_host_changed_meanwhile_is_a_conflict_and_nothing_is_merged() -> None:
    new = BASE.replace(b"example.org/a.git", b"example.org/theirs") + b'[branch "b"]\n\tremote = origin\n'
    offered = compared(BASE, new).offered
    host = HOST.replace(b"example.org/a.git", b"example.org/mine")
    assert [each.key for each in conflicts(host, offered)] == ["remote.origin.url"]
    assert conflicts(HOST, offered) == conflicts(new, offered) == ()
    with pytest.raises(JailError, match=r"another value for remote\.origin\.url"):
        merged(host, offered)


def test_windows_line_ends_and_comments_of_the_host_stay(tmp_path: Path) -> None:
    host = HOST.replace(b"\n", b"\r\n")
    offered = compared(BASE, BASE + b'[branch "b"]\n\tremote = origin\n').offered
    assert merged(host, offered).startswith(host)


def test_a_host_config_that_cannot_be_read_is_an_error_for_a_person() -> None:
    offered = compared(BASE, BASE + b'[branch "b"]\n\tremote = origin\n').offered
    with pytest.raises(JailError, match="cannot be read"):
        merged(b"[core", offered)


def test_git_is_run_on_a_copy_alone_in_a_folder_that_is_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[object, ...]] = []
    real = hostgit.config
    monkeypatch.setattr(hostgit, "config", lambda words, env: ran.append(tuple(words)) or real(words, env))
    offered = compared(BASE, BASE + b'[branch "b"]\n\tremote = origin\n').offered
    merged(HOST, offered, str(tmp_path))
    ((option, copy, *rest),) = ran
    assert option == "--file"
    assert str(copy).startswith(f"{tmp_path}/")
    assert rest == [b"--add", b"branch.b.remote", b"origin"]
    assert os.listdir(tmp_path) == []


def test_a_git_that_does_something_else_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offered = compared(BASE, BASE + b'[branch "b"]\n\tremote = origin\n').offered
    bodies = {
        "exit 1": "could not set",
        "exit 0": "something else",
        'printf "[alias]\\n\\tx = !id\\n" >> "$5"; exec /usr/bin/git "$@"': "something else",
        '/usr/bin/git "$@"; : > "$5"': "something else",
    }
    for body, said in bodies.items():
        fake = tmp_path / "git"
        fake.write_text(f"#!/bin/sh\n{body}\n")
        fake.chmod(0o755)
        monkeypatch.setattr(hostgit, "GITS", (str(fake),))
        with pytest.raises(JailError, match=said):
            merged(HOST, offered)
    monkeypatch.setattr(hostgit, "GITS", ())
    with pytest.raises(JailError, match="there is none"):
        merged(HOST, offered)


def test_the_table_and_the_offered_words_agree() -> None:
    """jail.plan.held says to a person what these keys are."""
    assert {key.partition(".")[0] for key in gitkeys._OFFERED} == {"branch", "remote", "submodule"}
