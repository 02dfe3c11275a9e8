"""How a run ended, in the words of the exit code, of `--status-file` and of the ledger."""

import errno
import os
import stat

from jail.errors import EXIT_CANNOT_ISOLATE, EXIT_JAIL, EXIT_SIGNAL_BASE, JailError
from jail.kernel import files
from jail.launch import ways
from jail.ledger.entries import encode
from jail.light import Final, NamedTuple, suppress

EXITED: Final = "exited"
KILLED: Final = "killed by a signal"
TIMEOUT: Final = "time is over"
MEMORY: Final = "memory limit"
OUTPUT: Final = "output limit"
FILES: Final = "open files limit"
KEPT_BACK: Final = "kept-back limit"
NOT_EXECUTED: Final = "could not be executed"
FAILED: Final = "jail failed"
REFUSED: Final = "refused"
RUNNING: Final = "running, or killed before it could say how it ended"


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


def of_error(error: BaseException) -> Outcome:
    """The outcome of a run that jail could not make, or not go on with."""
    if not isinstance(error, JailError):
        return Outcome(EXIT_JAIL, FAILED, 0, str(error) or type(error).__name__)
    return Outcome(error.code, REFUSED if error.code == EXIT_CANNOT_ISOLATE else FAILED, 0, error.message)


class StatusFile:
    """The file that `--status-file` names; its folder is opened before anything runs that could move it."""

    def __init__(self, path: str, workspace: str, state: str) -> None:
        self._shown = path
        folder, _, self._name = os.path.abspath(path).rpartition("/")
        root = os.path.realpath(workspace or ".")
        try:
            if link := ways.known(state, root).strays(folder):
                # It is opened before this run's command could lay one.
                raise OSError(
                    errno.ELOOP, f"the link {link} may be an earlier command's, and leads elsewhere"
                )
            flags = os.O_PATH | os.O_DIRECTORY
            self._folder = files.openat2(
                -1, os.path.realpath(folder or "/"), flags, files.RESOLVE_NO_SYMLINKS
            )
        except OSError as error:
            raise self._failure(error) from error
        # What an earlier run said must not be taken for the word of this one, should we be killed.
        self.write(Outcome(EXIT_JAIL, RUNNING), "")

    def _failure(self, error: OSError) -> JailError:
        return JailError(
            f"the status file cannot be written: {error.strerror}",
            where=f"--status-file {self._shown}: {error}",
            hint="name a file in a folder that is there, that you may write, and that no link leads to",
        )

    def write(self, outcome: Outcome, session: str, *, retry: bool = True) -> None:
        """Write the outcome as one JSON object; the file is replaced whole. Raises JailError."""
        fields = {
            "code": outcome.code,
            "reason": outcome.reason,
            "signal": outcome.signal,
            "detail": outcome.detail,
            "session": session,
        }
        partial = f".{self._name}.{os.getpid()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            fd = os.open(partial, flags, 0o644, dir_fd=self._folder)
            try:
                os.write(fd, encode(fields).encode("ascii") + b"\n")
            finally:
                os.close(fd)
            os.replace(partial, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except PermissionError as error:
            if retry:
                # A command may close its folder as its last act; it is the caller's, who gets it back.
                with suppress(OSError):
                    mode = os.fstat(self._folder).st_mode
                    os.chmod(f"/proc/self/fd/{self._folder}", stat.S_IMODE(mode) | 0o300)
                self.write(outcome, session, retry=False)
                return
            raise self._failure(error) from error
        except OSError as error:
            with suppress(OSError):
                os.unlink(partial, dir_fd=self._folder)
            raise self._failure(error) from error
