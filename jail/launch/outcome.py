"""How a run ended, in the words of the exit code, of `--status-file` and of the ledger."""

import os

from jail.errors import EXIT_SIGNAL_BASE, JailError
from jail.ledger.entries import encode
from jail.light import Final, NamedTuple

EXITED: Final = "exited"
KILLED: Final = "killed by a signal"
TIMEOUT: Final = "time is over"
NOT_EXECUTED: Final = "could not be executed"
FAILED: Final = "jail failed"
REFUSED: Final = "refused"


class Outcome(NamedTuple):
    """`code` is jail's exit code; `reason` one of the words above; `signal` the number that ended the
    command, or 0.
    """

    code: int
    reason: str
    signal: int = 0
    detail: str = ""
    cpu: float = 0.0
    peak: int = 0


def of_status(status: int, cpu: float, peak: int) -> Outcome:
    """The outcome of a wait status (wait(2)): the command's own code, or 128+n."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return Outcome(EXIT_SIGNAL_BASE + number, KILLED, number, "", cpu, peak)
    return Outcome(os.WEXITSTATUS(status), EXITED, 0, "", cpu, peak)


def write_status(path: str, outcome: Outcome, session: str) -> None:
    """Write the outcome as one JSON object, so that a script need not guess whose exit code it got.

    The file is replaced whole, by rename, and never through a symbolic link. Raises JailError.
    """
    text = encode(
        {
            "code": outcome.code,
            "reason": outcome.reason,
            "signal": outcome.signal,
            "detail": outcome.detail,
            "session": session,
        }
    )
    partial = f"{path}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        fd = os.open(partial, flags, 0o644)
        try:
            os.write(fd, text.encode("ascii") + b"\n")
        finally:
            os.close(fd)
        os.replace(partial, path)
    except OSError as error:
        hint = "name a file in a folder that you may write"
        raise JailError(
            f"the status file could not be written: {error.strerror}",
            where=f"--status-file {path}",
            hint=hint,
        ) from error
