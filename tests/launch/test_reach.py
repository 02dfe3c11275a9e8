"""Reaching a session: through paths of any length, past what is not a session's own, and never for ever."""

import os
import pwd
from pathlib import Path

import pytest

from jail.errors import JailError
from jail.launch import places, reach, relay, wire
from jail.launch.survey import caller_from
from jail.ledger import place
from support.answers import new_jail
from support.installed import Installed
from support.joining import session
from support.ledgers import state_in, write

NO_STREAMS = relay.Stdio(relay.NULL, relay.NULL, relay.NULL, merged=False)


def test_a_state_folder_with_a_long_name_is_no_hindrance(installed: Installed, tmp_path: Path) -> None:
    jail = new_jail(installed, tmp_path / "long")
    state = tmp_path / ("s" * 120) / ("t" * 120)
    state.mkdir(parents=True)
    jail = jail._replace(environment={**jail.environment, "XDG_STATE_HOME": str(state)})
    process = jail.popen("sleep", "100")
    try:
        sessions = state / "jail" / "sessions"
        while not list(sessions.glob(f"2*/{place.SOCKET}")):
            assert process.poll() is None
        done = jail.call("exec", "-", "--", "echo", "there")
        assert (done.returncode, done.stdout) == (0, "there\n"), done.stderr
        assert jail.call("stop", "-").returncode == 0
    finally:
        process.kill()
        process.wait()


def test_a_command_line_that_is_too_long_is_told_before_anything_is_asked(
    installed: Installed, tmp_path: Path
) -> None:
    with session(new_jail(installed, tmp_path / "arguments")) as found:
        half = "x" * (wire.REQUEST_LIMIT // 2)
        done = found.exec("echo", half, half)
        assert done.returncode == 125
        assert "can be sent" in done.stderr
        assert "put it into a script" in done.stderr
        assert len(found.exec("echo", half, half[:-1000]).stdout) == wire.REQUEST_LIMIT - 1000 + 2
        assert len(found.entries("joined")) == 1


def test_a_folder_that_others_may_enter_is_refused(installed: Installed, tmp_path: Path) -> None:
    with session(new_jail(installed, tmp_path / "opened")) as found:
        found.folder.chmod(0o750)
        done = found.exec("true")
        assert done.returncode == 125
        assert "not this user's alone" in done.stderr
        found.folder.chmod(0o700)
        assert found.lives()


def test_a_session_without_a_socket_is_said_to_be_out_of_reach(tmp_path: Path) -> None:
    folder, lock = write(state_in(tmp_path), end=False, keep_lock=True)
    with pytest.raises(JailError) as met:
        reach.ask(str(folder), wire.join(wire.Join(("true",), NO_STREAMS, "")))
    assert "cannot be reached" in met.value.message
    os.close(lock)


def test_the_newest_that_runs_is_found_among_those_that_ended(tmp_path: Path) -> None:
    state = state_in(tmp_path)
    older, one = write(state, end=False, keep_lock=True)
    newer, other = write(state, end=False, keep_lock=True)
    ended = write(state)[0]
    assert reach.session_named(state, reach.NEWEST_RUNNING) == str(newer)
    assert reach.running_sessions(state) == [str(newer), str(older)]
    assert reach.session_named(state, older.name, running=True) == str(older)
    with pytest.raises(JailError, match="has ended"):
        reach.session_named(state, place.LAST, running=True)
    assert reach.session_named(state, place.LAST) == str(ended)
    os.close(one)
    os.close(other)
    with pytest.raises(JailError, match="no session is running"):
        reach.session_named(state, reach.NEWEST_RUNNING)


@pytest.mark.parametrize("home", ["", "relative"])
def test_sessions_are_looked_for_where_a_run_puts_them_whatever_home_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    account = pwd.struct_passwd(("somebody", "x", 1, 1, "", str(tmp_path), "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda _uid: account)
    environ = {"HOME": home}
    assert reach.state_of(environ) == f"{tmp_path}/.local/state/jail"
    assert reach.state_of(environ) == places.own(environ, caller_from(environ, "").home).state
