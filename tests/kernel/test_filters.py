"""The compiled filter says what the rows say, and the kept one is used only when it is good."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from jail.errors import EXIT_CANNOT_ISOLATE, JailError
from jail.kernel import denials, filters, filters_build, guard, syscalls
from support.bpf import ALLOW, KILL, answer

SOURCE = Path(filters.__file__).parents[2]
ENOSYS = 38


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> filters.Filters:
    return filters.compiled(str(tmp_path_factory.mktemp("both") / "cache"))


def fold(chance: int) -> list[int]:
    return [(chance * 0x9E3779B97F4A7C15 >> shift) & denials.WORD for shift in range(6)]


class TestWhatItSays:
    def test_each_rule_inside_and_just_outside(self, both: filters.Filters) -> None:
        arch = syscalls.native()
        asked = denials.rules(arch)
        for number in range(arch.max_known + 1):
            concerning = [rule for rule in asked if rule.number == number]
            for arguments in [*questions_of(concerning), fold(number)]:
                wanted = denials.expected(concerning, number, arguments) or ALLOW
                assert answer([both.deny], number, arguments, arch=arch.name) == wanted, (number, arguments)

    def test_every_pair_of_conditions_on_sockets(self, both: filters.Filters) -> None:
        """All families by types by protocols that any rule names, and their high twins: where merging would
        go wrong.
        """
        arch = syscalls.native()
        asked = [rule for rule in denials.rules(arch) if rule.call == "socket"]
        families = [*range(48), *(family | high for family in (1, 2, 10, 16) for high in (1 << 32, 1 << 63))]
        protocols = [0, 1, 6, 17, 33, 115, 132, 136, 255, 256, 262, 1 << 32, 6 | 1 << 32]
        for family in families:
            for kind in (1, 2, 5, 6, 10, 0x80001):
                for protocol in protocols:
                    asked_for = [family, kind, protocol, 0, 0, 0]
                    wanted = denials.expected(asked, syscalls.number("socket"), asked_for) or ALLOW
                    assert (
                        answer([both.deny], syscalls.number("socket"), asked_for, arch=arch.name) == wanted
                    ), asked_for

    def test_together_x32_is_absent_and_other_architectures_die(self, both: filters.Filters) -> None:
        pair = [both.guard, both.deny]
        name = syscalls.native().name
        assert {answer(pair, syscalls.X32_BIT | number, arch=name) for number in range(600)} == {ENOSYS}
        assert {answer(pair, number, arch="i386") for number in (1, 11, 20, 120, 359)} == {KILL}

    def test_it_fits_into_one_program(self, both: filters.Filters) -> None:
        assert len(both.deny) // 8 < 1000
        assert len(both.guard) // 8 < 20


def questions_of(concerning: Sequence[denials.Rule]) -> list[list[int]]:
    return list(filters_build.questions(concerning))


class TestTheCheck:
    def test_a_rule_that_is_lost_is_noticed(self) -> None:
        """As if libseccomp had merged it away: every tenth rule is left out in turn."""
        arch = syscalls.native()
        asked = denials.rules(arch)
        for lost in range(0, len(asked), 10):
            program = filters_build.assemble([*asked[:lost], *asked[lost + 1 :]])
            with pytest.raises(JailError, match=f"to system call {asked[lost].number} "):
                filters_build.check(program, arch, asked)

    def test_a_denial_that_nobody_asked_for_is_noticed(self) -> None:
        arch = syscalls.native()
        asked = denials.rules(arch)
        more = denials.Rule("getpid", 39, 1, ())
        with pytest.raises(JailError, match="0x50001 instead of 0x7fff0000 to system call 39 "):
            filters_build.check(filters_build.assemble([*asked, more]), arch, asked)

    def test_a_call_that_libseccomp_has_no_name_for_is_denied_by_number(self) -> None:
        seccomp = filters_build._pyseccomp()
        nameless = [
            call for call in ("open_tree_attr", "listns") if seccomp.resolve_syscall(0xC000003E, call) < 0
        ]
        program = filters_build.build(syscalls.native())
        for call in nameless:
            assert answer([program], syscalls.number(call), arch=syscalls.native().name) == ENOSYS

    def test_a_missing_libseccomp_is_said_with_its_remedy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            filters_build, "_soname", lambda name: f"libabsent-{name}.so.9" if name == "seccomp" else None
        )
        monkeypatch.delitem(sys.modules, "pyseccomp", raising=False)
        with pytest.raises(JailError, match="cannot be built") as caught:
            filters_build.assemble([])
        assert caught.value.code == EXIT_CANNOT_ISOLATE
        assert "libseccomp2" in caught.value.hint


class TestTheCache:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return tmp_path / "cache"

    @pytest.fixture
    def kept(self, folder: Path) -> Path:
        filters.compiled(str(folder))
        (found,) = folder.iterdir()
        return found

    @pytest.fixture
    def built(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The builds that happen from now on."""
        made: list[str] = []
        real = filters_build.build

        def build(arch: syscalls.Arch) -> bytes:
            made.append(arch.name)
            return real(arch)

        monkeypatch.setattr(filters_build, "build", build)
        return made

    def test_a_second_launch_builds_nothing(
        self, folder: Path, kept: Path, built: list[str], both: filters.Filters
    ) -> None:
        assert filters.compiled(str(folder)) == both
        assert built == []

    def test_a_changed_file_is_built_anew(
        self, folder: Path, kept: Path, built: list[str], both: filters.Filters
    ) -> None:
        good = kept.read_bytes()
        kept.write_bytes(good[:-8] + bytes([6, 0, 0, 0, 0, 0, 0xFF, 0x7F]))
        assert filters.compiled(str(folder)) == both
        assert built == [syscalls.native().name]
        assert kept.read_bytes() == good

    def test_an_edited_maker_or_another_version_has_another_key(
        self, folder: Path, kept: Path, built: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(filters.cache, "generation", lambda *_: "denials.py edited")
        filters.compiled(str(folder))
        monkeypatch.setattr(filters, "__version__", "0.0.0")
        filters.compiled(str(folder))
        assert len(built) == 2

    def test_every_maker_is_a_module(self) -> None:
        for name in filters._MAKERS:
            assert (Path(filters.__file__).parent / name).is_file()


class TestTheLaunchPath:
    LAUNCH = (
        "import sys; sys.path.insert(0, {source!r}); "
        "from jail.kernel import filters; filters.compiled({cache!r})"
    )

    def launch(
        self, folder: Path, environment: dict[str, str]
    ) -> tuple[list[str], subprocess.CompletedProcess[str]]:
        code = self.LAUNCH.format(source=str(SOURCE), cache=str(folder / "cache"))
        if environment:  # a miss needs pyseccomp: keep the libraries of this interpreter
            code = f"import sys; sys.path += {sys.path!r}; " + code
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-X", "importtime", "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return [line.rpartition("|")[2].strip() for line in done.stderr.splitlines()], done

    def test_a_hit_imports_nothing_of_weight(self, tmp_path: Path) -> None:
        filters.compiled(str(tmp_path / "cache"))
        imported, _ = self.launch(tmp_path, {})
        assert "jail.kernel.filters" in imported
        heavy = "pyseccomp ctypes.util hashlib _hashlib json pathlib subprocess dataclasses"
        assert not {*heavy.split(), "jail.kernel.filters_build"} & set(imported)

    def test_a_miss_runs_no_program_from_path(self, tmp_path: Path) -> None:
        """CASES.md J11: find_library would run ldconfig, gcc, cc, ld, objdump by name."""
        marker, bait = tmp_path / "ran", tmp_path / "bin"
        bait.mkdir()
        for name in "ldconfig gcc cc ld objdump sh".split():
            (bait / name).write_text(f"#!/bin/sh\necho {name} >> {marker}\n")
            (bait / name).chmod(0o755)
        imported, _ = self.launch(tmp_path, {"PATH": str(bait)})
        assert "pyseccomp" in imported
        assert not marker.exists()
        subprocess.run(["gcc"], env={"PATH": str(bait)}, check=True)
        assert marker.read_text() == "gcc\n", "positive control"

    def test_the_patch_of_find_library_is_gone_afterwards(self) -> None:
        import ctypes.util

        filters_build._pyseccomp()
        assert ctypes.util.find_library.__module__ == "ctypes.util"

    def test_the_guard_is_not_kept_but_made(self, tmp_path: Path) -> None:
        assert filters.compiled(str(tmp_path)).guard == guard.program(syscalls.native())
