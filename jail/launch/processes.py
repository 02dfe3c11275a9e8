"""The processes of one run as the supervisor holds them: started by one fork, told by pipes, ended for
certain.

Rule: the pipes are the leash. The supervisor alone holds the ends that let the command start (`go`) and that
carry orders in (`orders`); when it dies they close, and what hears that ends. `end` returns only when
neither the keeper nor process 1 exists any more, and process 1 ends only after all that ran beneath it
(pid_namespaces(7)).
"""

import gc
import os

import _prctl

from jail.errors import JailError
from jail.kernel import cgroups, libc
from jail.launch import command, init, keeper
from jail.launch.channel import Channel
from jail.launch.streams import Streams
from jail.light import signal
from jail.plan.steps import Plan


class Processes:
    """The keeper, and through it process 1 and the command. `control` is where they speak; `private` are fds
    of the file systems in memory, where jail has to watch how much they take.
    """

    def __init__(self) -> None:
        self.control, self._theirs = Channel.pair()
        self._go_read, self._go = os.pipe2(os.O_CLOEXEC)
        self._orders, self._orders_end = Channel.pair()
        self._keeper = 0
        self.process_1 = 0
        self.private: list[int] = []

    def start(self, plan: Plan, built_from: keeper.BuiltFrom, streams: Streams, group: str) -> None:
        """Fork the keeper, which enters the control group `group` (if any) and builds the walls."""
        # Who inside loses its parent outside (the keeper was killed) comes to us, so that we can wait for its
        # end.
        start = command.Start(plan, streams.inner, self._theirs, self._go_read)
        door = cgroups.door(group) if group else -1
        launch = keeper.Launch(
            start,
            built_from,
            self._orders_end.fileno(),
            os.geteuid(),
            os.getpid(),
            streams.with_terminal,
            door,
        )
        try:
            libc.named("prctl(PR_SET_CHILD_SUBREAPER)", _prctl.prctl, _prctl.PR_SET_CHILD_SUBREAPER, 1)
            gc.freeze()  # a collection writes into each object, and each page written after a fork is copied
            self._keeper = os.fork()
            if self._keeper == 0:
                keeper.run(launch)
        except OSError as error:
            hint = "raise the limit on processes (ulimit -u, pids.max), or end some"
            where = getattr(error, "call", "fork")
            raise JailError(
                f"no process could be started: {error.strerror}", where=where, hint=hint
            ) from error
        finally:
            # Else we would wait for ourselves at the end.
            self._theirs.close()
            os.close(self._go_read)
            self._orders_end.close()
            if door >= 0:
                os.close(door)

    def go(self) -> None:
        """Let the command's exec happen."""
        os.write(self._go, b"g")
        gc.enable()

    def order(self, target: str, number: int, who: int = init.COMMAND) -> None:
        """Have process 1 signal the command or its group (init.TO_PROCESS, init.TO_GROUP), or one that
        joined.
        """
        self.tell(target, who, number)

    def tell(self, tag: str, *values: object, fds: tuple[int, ...] = ()) -> bool:
        """Give process 1 an order of init.py; False when it cannot take one (it has ended, and its last
        message is on the way; or what is inside keeps it from running).
        """
        try:
            self._orders.send(tag, *values, fds=fds, wait=False)
        except OSError:
            return False
        return True

    def end(self, *, kill: bool) -> None:
        """Wait for the end of all; `kill` does not wait for the keeper's own."""
        os.close(self._go)
        self._orders.close()
        if self._keeper:
            if kill:
                os.kill(self._keeper, signal.SIGKILL)  # not reaped yet, so the number is still its own
            _wait_for(self._keeper)
        if self.process_1:
            _wait_for(self.process_1)
        for fd in self.private:
            os.close(fd)
        self.private.clear()


def _wait_for(pid: int) -> None:
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        return  # its own parent has reaped it
