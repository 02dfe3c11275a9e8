"""What a session holds is laid out before the command is there: folders, bases, manifest."""

import os
from pathlib import Path

import pytest

from jail.errors import JailError
from jail.hold import base, store
from jail.launch import held, heldsize, resume
from jail.ledger.place import new_session
from jail.plan.build import build
from jail.plan.held import COPY, FILE, OVERLAY, Held
from jail.plan.steps import Plan
from support.hosts import FACTS, POLICY
from support.ledgers import state_in


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """One that holds two trees, one of them by a copy."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    things = (Held("t0", OVERLAY, str(tmp_path / "one"), ""), Held("t1", COPY, str(tmp_path / "two"), ""))
    return build(POLICY, FACTS, ("true",))._replace(held=things, uid=os.geteuid(), gid=os.getegid())


def test_a_plan_that_holds_nothing_leaves_nothing(tmp_path: Path, plan: Plan) -> None:
    session = new_session(state_in(tmp_path))
    found = held.begin(plan._replace(held=()), session, {})
    assert found == ("", None, (), (), None)
    assert not found.changed()
    found.end()
    assert os.listdir(session.folder) == ["lock"]


def test_all_is_there_before_the_command(tmp_path: Path, plan: Plan) -> None:
    session = new_session(state_in(tmp_path))
    found = held.begin(plan, session, {"PATH": "/usr/bin:relative::/usr/bin"})
    assert found.bases is not None
    assert found.bases.wait() == ""
    found.end()
    manifest = store.read_manifest(session.folder)
    assert manifest is not None
    assert (manifest.session, manifest.held, manifest.resumed) == (session.id, plan.held, "")
    assert manifest.path == (os.path.realpath("/usr/bin"),)
    assert sorted(os.listdir(found.folder)) == ["base", "manifest", "t0", "t1"]
    assert (Path(found.folder) / "t1/tree/file").read_text() == "two"
    for name in ("t0", "t1"):
        assert set(base.read(found.folder, name, lambda _: True)) == {"", "file"}


def test_what_a_copy_leaves_out_is_known(tmp_path: Path, plan: Plan) -> None:
    for name in ("a", "b", "c"):
        os.mkfifo(tmp_path / "two" / name)
    found = held.begin(plan, new_session(state_in(tmp_path)), {})
    found.end()
    assert sorted(found.left_out) == [f"{tmp_path}/two/{name}" for name in "abc"]
    assert found.lacks(2).endswith(f"{', '.join(found.left_out[:2])} and 1 more")
    assert found.lacks(3).endswith(", ".join(found.left_out))
    assert held.Holding().lacks(3) == ""


def test_what_cannot_be_laid_out_starts_nothing(tmp_path: Path, plan: Plan) -> None:
    session = new_session(state_in(tmp_path))
    (Path(session.folder) / "held").mkdir()
    with pytest.raises(JailError, match="cannot be laid out") as caught:
        held.begin(plan, session, {})
    assert "nothing was executed" in caught.value.hint


def test_a_run_that_goes_on_makes_only_what_is_new(tmp_path: Path, plan: Plan) -> None:
    state = state_in(tmp_path)
    old, new = new_session(state), new_session(state)
    held.begin(plan._replace(held=plan.held[:1]), old, {}).end()
    (Path(old.folder) / "held/t0/upper/file").write_text("of the command")
    os.close(old.lock_fd)
    found = held.begin(plan, new, {}, resume.of(old.id, state))
    assert found.bases is not None
    assert found.bases.wait() == ""
    found.end()
    assert found.changed()
    manifest = store.read_manifest(new.folder)
    assert manifest is not None
    assert (manifest.session, manifest.resumed, manifest.held) == (new.id, old.id, plan.held)
    assert (Path(new.folder) / "held/t0/upper/file").read_text() == "of the command"
    assert (Path(new.folder) / "held/t1/tree/file").read_text() == "two"


def test_a_run_that_goes_on_judges_by_what_the_first_one_had_too(tmp_path: Path, plan: Plan) -> None:
    """From a terminal without the virtual environment, with a policy that delivers more."""
    state = state_in(tmp_path)
    old, new = new_session(state), new_session(state)
    folder = f"{tmp_path}/one/bin"
    thing = plan.held[0]._replace(deliver="commands", commands=(folder,))
    held.begin(plan._replace(held=(thing,)), old, {"PATH": f"{folder}:/usr/bin"}).end()
    os.close(old.lock_fd)
    later = plan._replace(held=(thing._replace(commands=()),))
    held.begin(later, new, {"PATH": "/usr/bin"}, resume.of(old.id, state), held.Rules(("commands",))).end()
    manifest = store.read_manifest(new.folder)
    assert manifest is not None
    assert set(manifest.path) == {folder, os.path.realpath("/usr/bin")}
    assert manifest.held == (thing,)
    assert manifest.unasked == ()


def test_what_the_policy_delivers_is_known_to_who_goes_on(tmp_path: Path, plan: Plan) -> None:
    session = new_session(state_in(tmp_path))
    things = (plan.held[0]._replace(deliver="commands"), plan.held[1])
    held.begin(plan._replace(held=things), session, {}, rules=held.Rules(("commands", "git-config"))).end()
    manifest = store.read_manifest(session.folder)
    assert manifest is not None
    assert manifest.unasked == ("t0",)


def test_a_run_that_goes_on_may_hold_more_files(tmp_path: Path, plan: Plan) -> None:
    state = state_in(tmp_path)
    old, new = new_session(state), new_session(state)
    files = [
        Held(f"f{at}", FILE, str(tmp_path / name / "file"), "") for at, name in enumerate(("one", "two"))
    ]
    held.begin(plan._replace(held=tuple(files[:1])), old, {}).end()
    os.close(old.lock_fd)
    found = held.begin(plan._replace(held=tuple(files)), new, {}, resume.of(old.id, state))
    assert sorted(os.listdir(f"{found.folder}/files")) == ["f0", "f1"]


def test_a_run_that_fails_after_it_took_something_says_where_that_is(tmp_path: Path, plan: Plan) -> None:
    state = state_in(tmp_path)
    old, new = new_session(state), new_session(state)
    held.begin(plan._replace(held=plan.held[:1]), old, {}).end()
    (Path(old.folder) / "held/t1").mkdir()
    os.close(old.lock_fd)
    with pytest.raises(JailError, match="cannot be laid out") as caught:
        held.begin(plan, new, {}, resume.of(old.id, state))
    assert f"--resume {new.id}" in caught.value.hint
    os.close(new.lock_fd)
    assert resume.of(new.id, state).names


@pytest.mark.parametrize("deed", ["written", "removed", "closed"])
def test_whether_a_held_file_was_touched_is_asked_of_its_bytes(tmp_path: Path, plan: Plan, deed: str) -> None:
    thing = Held("f0", FILE, str(tmp_path / "one" / "file"), "")
    found = held.begin(plan._replace(held=(thing,)), new_session(state_in(tmp_path)), {})
    assert found.bases is None
    assert not found.changed()
    copy = Path(found.folder) / "files/f0/file"
    if deed == "written":
        times = copy.stat().st_atime_ns, copy.stat().st_mtime_ns
        copy.write_text("two")
        os.utime(copy, ns=times)
    elif deed == "removed":
        copy.unlink()
    else:
        copy.parent.chmod(0)
    assert found.changed()
    copy.parent.chmod(0o700)


def open_files() -> set[str]:
    return {name for name in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{name}")}


@pytest.mark.parametrize("again", [False, True], ids=["made", "taken over"])
def test_of_a_copy_only_what_comes_to_it_counts_and_nothing_stays_open(
    tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch, *, again: bool
) -> None:
    (tmp_path / "two/folder").mkdir()
    (tmp_path / "two/folder/large").write_bytes(b"x" * (3 << 20))
    (tmp_path / "two/link").symlink_to("folder")
    plan = plan._replace(held=plan.held[1:], limits=(("held_bytes", 1 << 20),))
    state = state_in(tmp_path)
    session = new_session(state)
    before = open_files()
    if again:
        held.begin(plan, session, {}).end()
        os.close(session.lock_fd)
        old, session = session, new_session(state)
        before = open_files()
        found = held.begin(plan, session, {}, resume.of(old.id, state))
    else:
        with monkeypatch.context() as patch:
            patch.setattr(heldsize, "_weighed", None)  # who copied it knows what it weighs
            found = held.begin(plan, session, {})
    assert found.size is not None
    monkeypatch.setattr(heldsize, "SLICE", 60.0)
    assert not found.size.over()
    (Path(found.folder) / "t1/tree/new").write_bytes(b"x" * (2 << 20))
    assert found.size.over()
    found.end()
    assert open_files() == before
