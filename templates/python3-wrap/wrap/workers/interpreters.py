"""Sub-interpreters as workers, each with a GIL of its own (PEP 684), in threads of the server.

They share what the operating system gives a process: working directory, environment, descriptors,
signals, and a crash. No thread can be killed without its process. So a worker that has to end is
treated like a task of the main process: its tasks are cancelled, and it is lost until they return.
"""

from __future__ import annotations

import contextlib
import importlib
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from wrap.net.sockets import pair
from wrap.workers.worker import WorkerProcess

#: What goes over a worker's control socket: to it, and from it.
CANCEL, READY = b"cancel", b"ready"
#: The most bytes of the reason why a worker could not start.
_LONGEST = 1 << 16
_PROGRAM = """
import sys
sys.path[:] = {path!r}
from wrap.workers.interpreted import main
main(**{arguments!r})
"""


class InterpreterWorker(WorkerProcess):
    """A sub-interpreter that runs the tasks of one process of the plan, as lost work if it hangs.

    Args:
        channel: the socket to it.
        control: tells it to end.
        longest: most bytes of an output.
        name: its functions.
        give_up: called with it when its tasks are cancelled.
    """

    def __init__(
        self,
        channel: socket.socket,
        control: socket.socket,
        longest: int,
        name: str,
        give_up: Callable[[InterpreterWorker], None],
    ) -> None:
        super().__init__(channel, str, longest)
        self._give_up = give_up
        self.name = name
        #: Whether its thread has ended; whether its tasks were cancelled.
        self.over = self._cancelled = False
        self._control = control

    @property
    def lost(self) -> bool:
        """Whether it was cancelled and still runs."""
        return self._cancelled and not self.over

    def await_ready(self) -> None:
        if (said := self._control.recv(_LONGEST)) != READY:
            raise ImportError(said.decode() or f"the sub-interpreter of {self.name} has ended")

    def end(self) -> str:
        """Cancel its tasks; return how it ended."""
        if not self._cancelled:
            self._cancelled = True
            self._give_up(self)
        with contextlib.suppress(OSError):  # it has ended
            self._control.send(CANCEL)
        self.close()
        return "was cancelled"

    def close(self) -> None:
        """Have it end when its threads have ended.

        A process that a handler has forked may hold a copy of a socket, so closing is not enough.
        """
        for end in (self._channel, self._control):
            with contextlib.suppress(OSError):  # it has ended
                end.shutdown(socket.SHUT_WR)
        super().close()

    def ended(self) -> None:
        """Note that its thread has ended, which reads what it is told until then."""
        self.over = True
        self._control.close()


class InterpreterStarter:
    """Starts sub-interpreters.

    Args:
        arguments: the arguments of `wrap.workers.interpreted.main` that are the same for all.
        longest: most bytes of an output.
        names: the functions of each process of the plan, in words.
        give_up: called with a worker whose tasks are cancelled.
    """

    def __init__(
        self,
        arguments: Mapping[str, Any],
        longest: int,
        names: Sequence[str],
        give_up: Callable[[InterpreterWorker], None],
    ) -> None:
        self._give_up = give_up
        self._arguments = arguments
        self._longest = longest
        self._names = names
        self._path = [*sys.path]
        # A private module, as `concurrent.interpreters` of 3.14 gives threads to no daemon.
        self._interpreters: Any = importlib.import_module("_interpreters")

    def spawn(self, process: int = 0) -> InterpreterWorker:
        """Return a worker for a process of the plan, which is still starting."""
        (ours, theirs), (control, its_control) = pair(), pair(socket.SOCK_SEQPACKET)
        worker = InterpreterWorker(
            ours, control, self._longest, self._names[process], self._give_up
        )
        run = partial(self._run, worker, process, {"channel": theirs, "control": its_control})
        threading.Thread(target=run, daemon=True).start()
        return worker

    def _run(
        self, worker: InterpreterWorker, process: int, ends: Mapping[str, socket.socket]
    ) -> None:
        try:
            config = self._interpreters.new_config("isolated", allow_daemon_threads=True)
            interpreter = self._interpreters.create(config)
            descriptors = {name: end.fileno() for name, end in ends.items()}
            arguments = {**self._arguments, **descriptors, "process": process}
            program = _PROGRAM.format(path=self._path, arguments=arguments)
            raised = self._interpreters.exec(interpreter, program)
        finally:
            for end in ends.values():
                end.close()
        if raised is None:
            self._interpreters.destroy(interpreter)
            worker.ended()
        else:  # it cannot be destroyed before its threads end
            print(f"a sub-interpreter of {worker.name} is kept: {raised.msg}")
