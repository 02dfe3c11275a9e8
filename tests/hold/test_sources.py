"""What changed in lists of packages: told by keys and by sources, whatever the text is."""

import json

import pytest

from jail.hold import locks, sources
from jail.hold.sources import MOST_BYTES, UNREAD, new_sources
from support.lines import executed


def npm(**packages: object) -> str:
    return json.dumps({"lockfileVersion": 3, "packages": packages})


def entry(name: str, version: str = "1", host: str = "r.example", **more: object) -> dict[str, object]:
    where = f"https://{host}/{name}/-/{name}-{version}.tgz"
    return {"version": version, "resolved": where, "integrity": f"sha512-{name}{version}", **more}


A = entry("a")
NPM = npm(**{"node_modules/a": A})
UV = """
[[package]]
name = "a"
version = "1"
source = { registry = "https://pypi.example/simple" }
sdist = { url = "https://pypi.example/a-1.tar.gz", hash = "sha256:1" }
"""
YARN = 'a@^1:\n  version "1"\n  resolved "https://r.example/a-1.tgz#1"\n  integrity sha512-1\n'
PNPM = "packages:\n\n  a@1.0.0:\n    resolution: {integrity: sha512-1}\n"


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        ("package-lock.json", NPM, NPM, ""),
        ("package-lock.json", NPM, npm(**{"node_modules/a": entry("a", "2")}), ""),
        (
            "package-lock.json",
            NPM,
            npm(**{"node_modules/a": entry("a", "2", "evil.example.net")}),
            "new sources: evil.example.net",
        ),
        # as json has it, and no search does
        (
            "package-lock.json",
            NPM,
            npm(**{"node_modules/a": entry("a", "2", "evil.example.net")}).replace("://", ":\\/\\/"),
            "new sources: evil.example.net",
        ),
        (
            "package-lock.json",
            NPM,
            npm(**{"node_modules/a": entry("a", "2", "evil.example.net")}).replace("https:", "https\\u003a"),
            "new sources: evil.example.net",
        ),
        (
            "package-lock.json",
            NPM,
            NPM.replace("https", "http"),
            "new sources: http://r.example; another content of the same version: a@1",
        ),
        (
            "package-lock.json",
            NPM,
            npm(**{"node_modules/a": {**A, "resolved": "file:../evil.tgz", "version": "2"}}),
            "new sources: file:../evil.tgz",
        ),
        (
            "package-lock.json",
            NPM,
            npm(**{"node_modules/a": {"resolved": "../evil", "link": True}}),
            "new sources: ../evil",
        ),
        (
            "package-lock.json",
            NPM,
            npm(**{"node_modules/a": {**A, "version": "2", "hasInstallScript": True}}),
            "scripts on installing: a",
        ),
        (
            "package-lock.json",
            NPM,
            npm(**{"node_modules/a": {**A, "integrity": "sha512-evil"}}),
            "another content of the same version: a@1",
        ),
        (
            "package-lock.json",
            NPM,
            npm(**{"node_modules/a": {key: A[key] for key in ("version", "resolved")}}),
            "another content of the same version: a@1",
        ),
        (
            "package-lock.json",
            NPM,
            npm(**{"node_modules/a": {**entry("evil"), "version": "2"}}),
            'new sources: "evil-1.tgz as a"',
        ),
        (
            "package-lock.json",
            NPM,
            npm(**{"node_modules/a": A, **{f"node_modules/b{n}": entry(f"b{n}") for n in range(12)}}),
            "12 new packages: b0, b1, b2 and 9 more",
        ),
        ("package-lock.json", NPM, NPM[:-1], UNREAD),
        ("package-lock.json", NPM, "[" * 100_000, UNREAD),
        ("package-lock.json", "{", NPM, "new sources: r.example; 1 new package: a"),
        ("package-lock.json", NPM, '{"a; b": {"version": "1"}}', '1 new package: "a; b"'),
        (
            "deno.lock",
            '{"remote": {"https://d.example/x": "1"}}',
            '{"remote": {"https://d.example/x": "1"}}',
            "",
        ),
        (
            "deno.lock",
            '{"remote": {"https://d.example/x": "1"}}',
            '{"remote": {"https://d.example/x": "2"}}',
            "another content of the same version: https://d.example/x",
        ),
        (
            "pipfile.lock",
            '{"_meta": {"hash": {"sha256": "1"}}, "default": {"a": {"hashes": ["1"], "version": "==1"}}}',
            '{"_meta": {"hash": {"sha256": "2"}}, "default": {"a": {"hashes": ["1", "2"], "version": "==1"}}}',
            "another content of the same version: a@==1",
        ),
        (
            "composer.lock",
            '{"packages": [{"name": "v/a", "version": "1", "dist": {"url": "https://c.example/a", "reference": "1"}}]}',
            '{"packages": [{"name": "v/a", "version": "1", "dist": {"url": "https://c.example/a", "reference": "2"}}]}',
            "another content of the same version: v/a@1/a",
        ),
        ("uv.lock", UV, UV.replace("-1.tar", "-2.tar").replace('version = "1"', 'version = "2"'), ""),
        (
            "uv.lock",
            UV,
            UV.replace("sha256:1", "sha256:2"),
            "another content of the same version: a@1/a-1.tar.gz",
        ),
        (
            "uv.lock",
            UV,
            UV.replace("pypi.example/simple", "evil.example/simple").replace(":/", ":\\u002f"),
            "new sources: evil.example",
        ),
        (
            "uv.lock",
            UV,
            UV.replace('{ registry = "https://pypi.example/simple" }', '{ path = "evil.whl" }'),
            "new sources: evil.whl",
        ),
        ("uv.lock", UV, UV + "=", UNREAD),
        ("uv.lock", UV, "a." * 500_000 + "a = 1", UNREAD),
        ("uv.lock", UV, "a = " + "[" * 100_000, UNREAD),
        (
            "cargo.lock",
            '[[package]]\nname = "a"\nversion = "1"\nsource = "registry+https://index.example/x"\nchecksum = "1"',
            '[[package]]\nname = "a"\nversion = "1"\nsource = "git+https://code.example/o/r?branch=x#1"\nchecksum = "1"',
            "new sources: code.example/o/r",
        ),
        ("yarn.lock", YARN, YARN, ""),
        (
            "yarn.lock",
            'resolved "https://code.example/good/x.git#1"',
            'resolved "https://code.example/evil/x.git#1"',
            "new sources: code.example/evil/x",
        ),
        ("yarn.lock", YARN, YARN.replace("sha512-1", "sha512-2"), "another content of the same version: a@1"),
        ("yarn.lock", YARN, YARN + YARN.replace("a@", "b@"), "1 new package: b"),
        ("yarn.lock", YARN, YARN.replace("https:", "https\\x3a"), UNREAD),
        ("yarn.lock", YARN.replace("https:", "https\\x3a"), YARN.replace("https:", "https\\x3a"), ""),
        (
            "yarn.lock",
            "",
            '"x@git@code.example:evil/x.git", "y@github:evil/y#main", git+ssh://git@code.example/evil/z.git',
            "new sources: ssh://code.example/evil/z, git@code.example:evil/x, github:evil/y",
        ),
        ("yarn.lock", YARN, YARN + '"c@file:../evil":\n', "new sources: file:../evil; 1 new package: c"),
        (
            "pnpm-lock.yaml",
            PNPM,
            PNPM.replace("sha512-1", "sha512-2"),
            "another content of the same version: a@1.0.0",
        ),
        (
            "pnpm-lock.yaml",
            PNPM,
            PNPM.replace("{integrity", '{tarball: "https:\\x2f/e.example", integrity'),
            UNREAD,
        ),
        ("pnpm-lock.yaml", PNPM, PNPM.replace("{integrity", "{tarball: !!binary aHR0, integrity"), UNREAD),
        (
            "pnpm-lock.yaml",
            PNPM,
            PNPM + "  b@1.0.0:\n    requiresBuild: true\n",
            "scripts on installing: b; 1 new package: b",
        ),
        (
            "go.sum",
            "a.example/m v1 h1:x=",
            "a.example/m v2 h1:y=\nb.example/n v1 h1:z=",
            "new sources: b.example/n",
        ),
        (
            "go.sum",
            "a.example/m v1 h1:x=",
            "a.example/m v1 h1:y=",
            "another content of the same version: a.example/m@v1",
        ),
        (
            "gemfile.lock",
            "  remote: https://gems.example/",
            "  remote: https://gems2.example/",
            "new sources: gems2.example",
        ),
        (
            "gemfile.lock",
            "  remote: .",
            "  remote: ../evil\n  specs:\n    x (1)",
            "new sources: ../evil; 1 new package: x",
        ),
        ("mix.lock", "", '  "a": {:hex, :a, "1.0", "f00"},', "1 new package: a"),
        ("requirements.txt", "a==1", "a==2\nb==1", "1 new package: b"),
        ("requirements.txt", "a==1", "a==2 \\\n    --hash=sha256:1\n", ""),
        (
            "requirements.txt",
            "a==1 --hash=sha256:1",
            "a==1 \\\n --hash=sha256:2",
            "another content of the same version: a==1",
        ),
        (
            "requirements.txt",
            "a==1",
            "--index-url https://evil.example/simple\na==1",
            "new sources: evil.example",
        ),
        (
            "requirements.txt",
            "",
            "b @ https://files.example/o/archive/b.zip",
            "new sources: files.example/o/archive; 1 new package: b",
        ),
        (
            "requirements.txt",
            "",
            "-r more.txt\n-e .\n./evil\nx.whl",
            'new sources: "-r more.txt", "-e .", ./evil and 1 more',
        ),
        ("requirements.txt", "", "-\\\nr more.txt", 'new sources: "- r more.txt"'),
        ("requirements.txt", "", "git+https://code.example/o/r", "new sources: code.example/o/r"),
        ("requirements.txt", "", "# coding: utf-7\n+AC0-r evil", UNREAD),
        ("requirements.txt", "", "\0a", UNREAD),
        (
            "poetry.lock",
            "",
            "a = [" + ", ".join(f"'https://h{n}.example/'" for n in range(9)) + "]",
            "new sources: h0.example, h1.example, h2.example and 6 more",
        ),
    ],
)
def test_a_lock_file_is_told_by_what_it_did_not_have(name: str, old: str, new: str, told: str) -> None:
    assert new_sources(name, old.encode(), new.encode()) == told


def test_all_sources_of_a_new_lock_file_are_new_and_one_that_is_too_long_is_said() -> None:
    assert new_sources("yarn.lock", None, b"https://a.example/x") == "new sources: a.example"
    assert (
        new_sources("yarn.lock", b"x" * (MOST_BYTES + 1), b"https://a.example/x") == "new sources: a.example"
    )
    assert new_sources("uv.lock", b"", None) == UNREAD
    assert new_sources("uv.lock", b"", b"x" * (MOST_BYTES + 1)) == UNREAD


@pytest.mark.parametrize(
    ("name", "key"), [("n" * (1 << 20), "files"), ("a", "k" * (1 << 20))], ids=["a long name", "a long key"]
)
def test_no_name_is_copied_whole_for_each_of_its_children(name: str, key: str) -> None:
    tree = {"name": name, "version": "1", key: [{"hash": "1", "file": f"{n}"} for n in range(1000)]}
    found = locks.of_tree(tree)
    assert len(found.contents) == 1001
    assert max(map(len, found.contents)) < 4000


@pytest.mark.parametrize("text", ["://", "a", "git@git@:", "github:a", "https://a"])
def test_no_text_takes_more_than_a_time_linear_in_its_length(text: str) -> None:
    small, large = ((text * size)[:size].encode() for size in (1 << 11, 1 << 15))
    one, sixteen = (executed(lambda: new_sources("yarn.lock", b"", each)) for each in (small, large))  # noqa: B023 - called at once
    assert sixteen <= 18 * one


@pytest.mark.parametrize(
    ("name", "found"),
    [
        *(
            (name, True)
            for name in ("package-lock.json", "uv.lock", "requirements.txt", "requirements-dev.txt")
        ),
        *((name, True) for name in ("requirements.in", "constraints.txt", "cargo.lock", "go.sum")),
        *((name, False) for name in ("requirements.md", "my-requirements.txt", "lock", "x.lock")),
    ],
)
def test_which_names_are_lock_files(name: str, found: bool) -> None:
    assert sources.is_lock(name) == found
