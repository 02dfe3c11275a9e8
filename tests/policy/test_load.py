"""Finding and reading policy files, and what is kept of them, which is made anew when anything is odd."""

import marshal
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import jail
from jail.errors import EXIT_USAGE, JailError
from jail.kernel import cache as caching
from jail.kernel.digest import sha256_hex
from jail.policy import load as loading
from jail.policy import sources
from jail.policy.check import PolicyFaults
from jail.policy.load import load
from jail.policy.sources import LARGEST_FILE, find, shipped_folder, shipped_names
from jail.policy.value import Policy
from support.installed import CHECKOUT, Installed

HOME = "/home/ada"
PACKAGES = Path(jail.__file__).parent.parent
"""Where the jail under test lies, for children that start without site-packages."""
TEXT = 'name = "mine"\n[files]\nread = ["/srv"]\n[limits]\ntimeout = "1.5h"\n'
HEAVY = (
    "tomllib pydantic pydantic_core json hashlib difflib pathlib dataclasses subprocess logging argparse "
    "shutil tempfile socket inspect jail.policy.parse jail.policy.shape jail.policy.compose jail.policy.narrow"
).split()


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    file = tmp_path / "mine.toml"
    file.write_text(TEXT, encoding="utf-8")
    return file


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The contents that were parsed: none when the cache had the answer."""
    from jail.policy import parse as parsing

    calls: list[bytes] = []
    real = parsing.parse

    def parse(content: bytes, *more: Any) -> parsing.Document:
        calls.append(content)
        return real(content, *more)

    monkeypatch.setattr(parsing, "parse", parse)
    return calls


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, bytes, bytes]]:
    """What was given to the cache: its folder, a name, a key and a body each."""
    calls: list[tuple[str, str, bytes, bytes]] = []
    real = caching.write

    def write(folder: str, name: str, wanted: bytes, body: bytes) -> None:
        calls.append((folder, name, wanted, body))
        real(folder, name, wanted, body)

    monkeypatch.setattr(caching, "write", write)
    return calls


def refused(name: str | Path, home: str = HOME) -> JailError:
    with pytest.raises(JailError) as error:
        load(str(name), None, home)
    assert error.value.code == EXIT_USAGE
    assert error.value.hint
    return error.value


def cached(cache: Path) -> Path:
    """The one file in the cache."""
    (file,) = cache.iterdir()
    return file


def test_a_bare_name_is_a_shipped_policy() -> None:
    assert find("overnight") == os.path.join(shipped_folder(), "overnight.toml")
    assert load("overnight", None, HOME).name == "overnight"


@pytest.mark.parametrize("name", shipped_names())
def test_every_shipped_policy_is_a_policy_of_its_name(name: str) -> None:
    assert load(name, None, HOME).name == name


def shipped_file(python: str, packages: Path) -> Path:
    """Where the jail of `packages` finds its shipped policy."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); "
        "from jail.policy import sources; print(sources.find('overnight'))"
    )
    command = [python, "-I", "-S", "-c", code, str(packages)]
    return Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())


def test_in_a_checkout_the_shipped_policies_lie_beside_the_package() -> None:
    assert shipped_file(sys.executable, CHECKOUT) == CHECKOUT / "policies" / "overnight.toml"


def test_an_installed_jail_has_its_policies_in_the_package(installed: Installed) -> None:
    found = shipped_file(str(installed.python), installed.packages)
    assert found == installed.packages / "jail" / "policies" / "overnight.toml"


@pytest.mark.parametrize(
    "name", ["", "overnite", "parts", "Overnight", ".", "..", "overnight\0", "~", "overnight.", "\udcff"]
)
def test_an_unknown_name_lists_the_shipped_ones(name: str) -> None:
    error = refused(name)
    assert error.where == "--policy"
    assert "overnight" in error.hint
    assert error.lines()


@pytest.mark.parametrize("spelled", ["mine.toml", "./mine.toml", "../{folder}/mine.toml"])
def test_a_slash_or_the_ending_makes_it_a_file(
    spelled: str, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(mine.parent)
    policy = load(spelled.format(folder=mine.parent.name), None, HOME)
    assert policy.sources == ((str(mine), sha256_hex(TEXT.encode())),)


def test_a_file_named_like_a_shipped_policy_is_not_taken_for_it(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The current folder is the workspace, which the agent writes."""
    (mine.parent / "overnight").write_text('name = "planted"', encoding="utf-8")
    (mine.parent / "policies").mkdir()
    (mine.parent / "policies" / "overnight.toml").write_text('name = "planted"', encoding="utf-8")
    monkeypatch.chdir(mine.parent)
    assert load("overnight", None, HOME).name == "overnight"


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_folder(path: Path) -> None:
    path.mkdir()


def make_large(path: Path) -> None:
    path.write_bytes(b"#" * (LARGEST_FILE + 1))


def make_dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def make_loop(path: Path) -> None:
    path.symlink_to(path)


def make_nothing(path: Path) -> None:
    assert not path.exists()


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (make_fifo, "not a regular file"),
        (make_folder, "not a regular file"),
        (make_large, "larger than 1024 KiB"),
        (make_dangling, "leads nowhere"),
        (make_loop, "symbolic links"),
        (make_nothing, "No such file"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_path(
    make: Callable[[Path], None], part: str, tmp_path: Path
) -> None:
    file = tmp_path / "x.toml"
    make(file)
    error = refused(file)
    assert part in error.message
    assert error.where == str(file)


@pytest.mark.parametrize(
    ("name", "part"), [("/dev/null", "regular"), ("/dev/zero", "regular"), ("/a\0b", "NUL")]
)
def test_devices_and_impossible_paths_are_refused(name: str, part: str) -> None:
    assert part in refused(name).message


def test_the_largest_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_bytes(TEXT.encode() + b"#" * (LARGEST_FILE - len(TEXT)))
    assert load(str(file), None, HOME).name == "mine"


def test_a_linked_policy_file_is_read(mine: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.toml"
    link.symlink_to(mine)
    assert load(str(link), None, HOME).name == "mine"


@pytest.mark.parametrize("mode", [0o602, 0o646, 0o666, 0o777])
def test_a_file_that_anybody_may_write_is_refused(mode: int, mine: Path) -> None:
    mine.chmod(mode)
    error = refused(mine)
    assert "written by anybody" in error.message
    assert error.where == str(mine)
    assert "`chmod o-w`" in error.hint


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o644, 0o664, 0o660, 0o775])
def test_a_file_that_its_group_may_write_is_read(mode: int, mine: Path) -> None:
    """What umask 002 makes, which many systems have."""
    mine.chmod(mode)
    assert load(str(mine), None, HOME).name == "mine"


def test_what_a_link_leads_to_is_judged_not_the_link(mine: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.toml"
    link.symlink_to(mine)
    mine.chmod(0o666)
    assert "written by anybody" in refused(link).message


def test_a_shipped_file_is_judged_as_any_other(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "shipped_folder", lambda: str(tmp_path))
    assert load("mine", None, HOME).name == "mine"
    mine.chmod(0o646)
    error = refused("mine")
    assert "written by anybody" in error.message
    assert error.where == str(mine)


def test_a_file_that_became_writable_by_anybody_is_not_answered_from_the_cache(
    mine: Path, cache: Path
) -> None:
    load(str(mine), str(cache), HOME)
    mine.chmod(0o646)
    with pytest.raises(JailError, match="written by anybody"):
        load(str(mine), str(cache), HOME)


def test_the_second_launch_parses_nothing(mine: Path, cache: Path, parsed: list[bytes]) -> None:
    first = load(str(mine), str(cache), HOME)
    second = load(str(mine), str(cache), HOME)
    assert second == first == load(str(mine), None, HOME)
    assert second.digest == first.digest
    assert [type(field) for field in second] == [type(field) for field in first]
    assert len(parsed) == 2  # the first launch, and the one without a cache


def test_no_cache_leaves_no_file(mine: Path, tmp_path: Path) -> None:
    load(str(mine), None, HOME)
    assert list(tmp_path.iterdir()) == [mine]


def test_a_faulty_policy_is_not_cached(mine: Path, cache: Path) -> None:
    mine.write_text('name = ""', encoding="utf-8")
    for _ in range(2):
        with pytest.raises(PolicyFaults):
            load(str(mine), str(cache), HOME)
    assert not cache.exists()


def test_one_policy_keeps_one_cache_file_through_its_edits(mine: Path, cache: Path) -> None:
    for number in range(3):
        mine.write_text(TEXT + f"# {number}\n", encoding="utf-8")
        load(str(mine), str(cache), HOME)
    assert len(list(cache.iterdir())) == 1


def another_content(mine: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    del monkeypatch
    mine.write_text(TEXT.replace("/srv", "/opt"), encoding="utf-8")
    return HOME


def another_home(mine: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    del mine, monkeypatch
    return "/home/bob"


def another_jail(mine: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    del mine
    monkeypatch.setattr(loading, "__version__", "99")
    return HOME


def another_python(mine: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    del mine
    monkeypatch.setattr(sys, "version", "9.9")
    return HOME


def another_judge(mine: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    del mine
    monkeypatch.setattr(caching, "generation", lambda folder, modules: f"{folder} {modules} edited")
    return HOME


@pytest.mark.parametrize(
    "change", [another_content, another_home, another_jail, another_python, another_judge]
)
def test_whatever_decides_the_result_is_in_the_key(
    change: Callable[[Path, pytest.MonkeyPatch], str],
    mine: Path,
    cache: Path,
    parsed: list[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load(str(mine), str(cache), HOME)
    home = change(mine, monkeypatch)
    load(str(mine), str(cache), home)
    load(str(mine), str(cache), home)
    assert len(parsed) == 2


def test_a_home_that_the_policy_gives_is_seen_after_the_cache_was_filled_for_another(
    mine: Path, cache: Path
) -> None:
    load(str(mine), str(cache), HOME)
    with pytest.raises(PolicyFaults):
        load(str(mine), str(cache), "/srv")


def test_the_judges_are_all_modules_that_decide() -> None:
    code = (
        "import sys; import jail.policy.compose; "
        "print(*{n for n in sys.modules if n.startswith('jail.policy.')} - {'jail.policy.load'})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PACKAGES, capture_output=True, text=True, check=True
    )
    assert {f"{name.rpartition('.')[2]}.py" for name in done.stdout.split()} == set(loading._JUDGES)


class Files(NamedTuple):
    """A person's file, a workspace with a project's file, and shipped levels of the test's own."""

    user: Path
    workspace: Path
    shipped: Path
    cache: Path

    def load(self, chosen: str | None = None) -> Policy:
        return load(chosen, str(self.cache), HOME, user=str(self.user), workspace=str(self.workspace))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    found = Files(*(tmp_path / name for name in ("policy.toml", "workspace", "shipped", "cache")))
    found.workspace.mkdir()
    shutil.copytree(shipped_folder(), found.shipped)
    monkeypatch.setattr(sources, "shipped_folder", lambda: str(found.shipped))
    monkeypatch.setattr(loading, "shipped_folder", lambda: str(found.shipped))
    found.user.write_text('[limits]\ntmp = "3 GiB"\n', encoding="utf-8")
    (found.workspace / ".jail.toml").write_text('[limits]\ntmp = "1 GiB"\n', encoding="utf-8")
    return found


def test_all_files_that_took_part_are_named_with_their_digests(files: Files) -> None:
    for policy in (files.load(), files.load()):  # made, then kept
        names = [os.path.relpath(file, files.shipped.parent) for file, _ in policy.sources]
        assert names[-3:] == ["shipped/overnight.toml", "policy.toml", "workspace/.jail.toml"]
        assert names[0] == "shipped/parts/system.toml"
        for file, digest in policy.sources:
            assert digest == sha256_hex(Path(file).read_bytes())
        assert policy.tmp_bytes == 1 << 30


def test_a_second_launch_with_all_files_parses_nothing(files: Files, parsed: list[bytes]) -> None:
    first = files.load()
    count = len(parsed)
    assert count >= 4
    assert files.load() == first
    assert len(parsed) == count


def edit(file: Path) -> None:
    file.write_text(file.read_text(encoding="utf-8") + "# x\n", encoding="utf-8")


CHANGES: dict[str, Callable[[Files], object]] = {
    "the person's file is edited": lambda files: files.user.write_text('[limits]\ntmp = "4 GiB"\n'),
    "the person's file is gone": lambda files: files.user.unlink(),
    "the project's file is edited": lambda files: (files.workspace / ".jail.toml").write_text("# none\n"),
    "the project's file is gone": lambda files: (files.workspace / ".jail.toml").unlink(),
    "the level is edited": lambda files: edit(files.shipped / "overnight.toml"),
    "a part is edited": lambda files: edit(files.shipped / "parts/system.toml"),
    "a part is replaced": lambda files: shutil.copy2(
        files.shipped / "parts/system.toml", files.shipped / "parts/screen.toml"
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_any_file_makes_the_policy_anew(change: str, files: Files, parsed: list[bytes]) -> None:
    before = files.load()
    parsed.clear()
    CHANGES[change](files)
    after = files.load()
    assert parsed
    assert after.sources != before.sources
    parsed.clear()
    assert files.load() == after
    assert not parsed


@pytest.mark.parametrize("file", ["overnight.toml", "parts/system.toml"])
def test_a_shipped_file_that_became_writable_by_anybody_is_not_answered_from_the_cache(
    file: str, files: Files
) -> None:
    files.load()
    (files.shipped / file).chmod(0o646)
    with pytest.raises(JailError, match="written by anybody"):
        files.load()


def test_files_that_appear_take_part_at_once(files: Files) -> None:
    project, content = files.workspace / ".jail.toml", "[limits]\nprocesses = 17\n"
    project.unlink()
    assert files.load().processes == 4096
    project.write_text(content, encoding="utf-8")
    assert files.load().processes == 17
    files.user.write_text('base = "ci"\n', encoding="utf-8")
    assert (files.load().name, files.load().processes) == ("ci", 17)
    assert files.load("interactive").name == "interactive"


def test_two_workspaces_do_not_answer_for_each_other(files: Files, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / ".jail.toml").write_text("[limits]\nprocesses = 17\n", encoding="utf-8")
    for _ in range(2):
        assert files.load().processes == 4096
        assert files._replace(workspace=other).load().processes == 17


def garbage(file: Path) -> None:
    file.write_bytes(os.urandom(500))


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def flipped(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[content.index(b"/srv") + 1] ^= 1
    file.write_bytes(content)


def of_another_policy(file: Path) -> None:
    other = file.parent.parent / "other.toml"
    other.write_text(TEXT.replace("/srv", "/opt"), encoding="utf-8")
    load(str(other), str(file.parent), HOME)
    (made,) = set(file.parent.iterdir()) - {file}
    made.rename(file)


def writable_by_all(file: Path) -> None:
    file.chmod(0o602)


def a_link_to_a_good_one(file: Path) -> None:
    elsewhere = file.parent.parent / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)


ODD_FILES = (garbage, cut, flipped, of_another_policy, writable_by_all, a_link_to_a_good_one)


@pytest.mark.parametrize("spoil", ODD_FILES)
def test_an_odd_cache_file_is_not_believed_and_is_made_anew_silently(
    spoil: Callable[[Path], None],
    mine: Path,
    cache: Path,
    parsed: list[bytes],
    capfd: pytest.CaptureFixture[str],
) -> None:
    policy = load(str(mine), str(cache), HOME)
    spoil(cached(cache))
    parsed.clear()
    assert load(str(mine), str(cache), HOME) == policy
    assert load(str(mine), str(cache), HOME) == policy
    assert parsed == [TEXT.encode()]
    assert not cached(cache).is_symlink()
    assert capfd.readouterr() == ("", "")


def with_fields(make: Callable[[list[object]], object]) -> Callable[[bytes], bytes]:
    """Turns a body into that of what `make` makes of its fields."""

    def changed(body: bytes) -> bytes:
        fields, shipped = marshal.loads(body)
        return marshal.dumps((make(list(fields)), shipped))

    return changed


ODD_BODIES: dict[str, Callable[[bytes], bytes]] = {
    "no marshal": lambda _: b"\xff",
    "no bytes": lambda _: b"",
    "half an object": lambda _: b")\x05",
    "no object": lambda _: b"0",
    "the fields alone": lambda body: marshal.dumps(marshal.loads(body)[0]),
    "a number for a state": lambda body: marshal.dumps((marshal.loads(body)[0], (("file", 1),))),
    "no states": lambda body: marshal.dumps((marshal.loads(body)[0], None)),
    "no tuple": with_fields(lambda fields: fields),
    "nothing": with_fields(lambda _: None),
    "a field less": with_fields(lambda fields: tuple(fields[1:])),
    "a field more": with_fields(lambda fields: (*fields, 1)),
    "a number for the name": with_fields(lambda fields: (1, *fields[1:])),
    "a list for a tuple": with_fields(lambda fields: (*fields[:3], ["/"], *fields[4:])),
    "a number in a tuple": with_fields(lambda fields: (*fields[:3], (1,), *fields[4:])),
    "half a pair": with_fields(lambda fields: (*fields[:10], (("A",),), *fields[11:])),
    "true for a number": with_fields(lambda fields: (*fields[:14], True, *fields[15:])),
    "a number for true": with_fields(lambda fields: (*fields[:8], 1, *fields[9:])),
    "a whole number for seconds": with_fields(lambda fields: (*fields[:19], 1, *fields[20:])),
    "half a source": with_fields(lambda fields: (*fields[:21], (("file",),), *fields[22:])),
    "a text for the losses": with_fields(lambda fields: (*fields[:20], "landlock", *fields[21:])),
}


@pytest.mark.parametrize("oddity", ODD_BODIES)
def test_a_body_that_does_not_fit_is_not_believed_and_is_made_anew_silently(
    oddity: str,
    mine: Path,
    cache: Path,
    kept: list[tuple[str, str, bytes, bytes]],
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Under the right key and digest, as a defect of ours might leave it."""
    policy = load(str(mine), str(cache), HOME)
    [(folder, name, key, body)] = kept
    caching.write(folder, name, key, ODD_BODIES[oddity](body))
    assert load(str(mine), str(cache), HOME) == policy
    assert load(str(mine), str(cache), HOME) == policy
    assert kept[2:] == [(folder, name, key, body)]
    assert capfd.readouterr() == ("", "")


def test_control_a_body_that_fits_is_believed(
    mine: Path, cache: Path, kept: list[tuple[str, str, bytes, bytes]]
) -> None:
    """The bodies above fail for what is wrong with them, not because of how the test writes them."""
    load(str(mine), str(cache), HOME)
    [(folder, name, key, body)] = kept
    caching.write(folder, name, key, with_fields(lambda fields: ("other", *fields[1:]))(body))
    assert load(str(mine), str(cache), HOME).name == "other"


@pytest.mark.root
def test_a_cache_file_or_folder_of_another_user_is_not_believed(
    mine: Path, cache: Path, parsed: list[bytes]
) -> None:
    load(str(mine), str(cache), HOME)
    os.chown(cached(cache), 12345, 12345)
    load(str(mine), str(cache), HOME)
    assert len(parsed) == 2
    assert cached(cache).stat().st_uid == 0
    os.chown(cache, 12345, 12345)
    load(str(mine), str(cache), HOME)
    load(str(mine), str(cache), HOME)
    assert len(parsed) == 4


@pytest.mark.parametrize("place", ["/dev/null", "/proc/nowhere/cache", "mine.toml/cache", "a\0b", ""])
def test_a_cache_that_cannot_be_is_none(place: str, mine: Path, parsed: list[bytes]) -> None:
    folder = place if place.startswith("/") or not place or "\0" in place else str(mine.parent / place)
    assert load(str(mine), folder, HOME).name == "mine"
    assert len(parsed) == 1


def test_a_cache_hit_needs_no_slow_import(mine: Path, cache: Path) -> None:
    """In a child as jail starts: -I -S. What `os` and `jail.light` bring by themselves is allowed."""
    load(str(mine), str(cache), HOME)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import os, jail.light; before = set(sys.modules); "
        "from jail.policy.load import load; policy = load(*sys.argv[2:]); "
        "print(policy.name, policy.digest, *(set(sys.modules) - before)); print(*sys.modules)"
    )
    arguments = [sys.executable, "-I", "-S", "-c", code, str(PACKAGES), str(mine), str(cache), HOME]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    first, everything = done.stdout.splitlines()
    name, digest, *modules = first.split()
    assert (name, digest) == ("mine", load(str(mine), None, HOME).digest)
    assert not {*HEAVY, "re"} & set(everything.split())
    others = {module for module in modules if not module.startswith("jail.")}
    assert others <= {"_sha256", "_sha2", "marshal", "errno"}


def test_control_a_cache_miss_would_import_them(mine: Path, cache: Path) -> None:
    code = "import sys; from jail.policy.load import load; load(*sys.argv[1:]); print(*sys.modules)"
    arguments = [sys.executable, "-c", code, str(mine), str(cache), HOME]
    done = subprocess.run(arguments, cwd=PACKAGES, capture_output=True, text=True, check=True)
    assert {"tomllib", "pydantic", "jail.policy.parse"} <= set(done.stdout.split())
