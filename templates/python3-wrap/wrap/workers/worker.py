"""The server's end of a worker process: sends requests and receives results, piece by piece."""

from __future__ import annotations

import socket
from collections.abc import Callable

from wrap.net.framing import Inflow, Outflow
from wrap.net.messages import Request, Result
from wrap.values.shared_memory import Shared


class WorkerDiedError(Exception):
    """A process ended, or sent an invalid message (as the error says), before it had answered."""


class WorkerProcess:
    """A process that the fork server has forked, or is about to.

    Args:
        end: kills it unless it has ended, and returns how it ended.
        longest: most bytes of an output.
    """

    #: An answer may come at any time.
    receiving = True

    def __init__(self, channel: socket.socket, end: Callable[[], str], longest: int) -> None:
        self._channel = channel
        self._channel.setblocking(False)
        self._end = end
        self._inflow = Inflow(longest)
        self._outflow = Outflow()
        self._frames: list[bytearray | Shared] = []
        self._number: int | None = None
        #: The tasks of its last execution that it was called for and has not answered.
        self.owed: set[int] = set()
        #: How many executions it has served.
        self.executions = 0

    def await_ready(self) -> None:
        """Wait until it has imported its functions, as a forked process has from the beginning.

        Raises ImportError if it cannot.
        """

    def fileno(self) -> int:
        return self._channel.fileno()

    @property
    def sending(self) -> bool:
        return bool(self._outflow)

    def post(self, request: Request) -> None:
        """Send a request; `flush` sends the bytes that do not fit into the socket now."""
        if request.ident.number != self._number:
            self._number = request.ident.number
            self.executions += 1
        self.owed.update(request.tasks)
        self._outflow.push(request.frames_within())
        self.flush()

    def flush(self) -> None:
        """Send more of the remaining bytes. If the process has died, `receive` reports it."""
        try:
            self._outflow.flush(self._channel)
        except OSError:
            self._outflow = Outflow()

    def receive(self) -> list[Result]:
        """Return the results that have arrived whole. Raises WorkerDiedError at the end."""
        try:
            return self._received()
        except (ValueError, TypeError) as error:
            raise WorkerDiedError(f"sent something that is no result ({error})") from error

    def _received(self) -> list[Result]:
        try:
            frames = self._inflow.receive(self._channel)
        except BlockingIOError:
            return []
        except OSError:
            frames = None
        if frames is None:
            raise WorkerDiedError
        self._frames += frames
        whole = len(self._frames) // 2 * 2
        results = Result.read(self._frames[:whole])
        del self._frames[:whole]
        for result in results:
            if result.number != self._number or result.task not in self.owed:
                raise WorkerDiedError("sent the result of another execution")
            if result.place is None:  # else the task goes on
                self.owed.discard(result.task)
        return results

    def alive(self) -> bool:
        """Return whether its end of the socket is open and it has sent nothing unasked."""
        try:
            self._channel.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def end(self) -> str:
        """Kill it and all that it started; return how it ended."""
        self._channel.close()
        return self._end()

    def close(self) -> None:
        """Close the channel; the process ends when it notices."""
        self._channel.close()
