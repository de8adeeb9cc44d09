"""The server's end of a further process: requests go out, results come in, piece by piece."""

from __future__ import annotations

import socket
from collections.abc import Callable

from wrap.net.framing import Inflow, Outflow
from wrap.net.messages import Request, Result
from wrap.values.shared_memory import Shared


class ProcessDiedError(Exception):
    """A process ended, or talks nonsense (as the message says), before it had answered."""


class Process:
    """A process that the fork server forked, or is about to.

    Args:
        channel: the socket to it.
        end: kills it unless it has ended, and says how it ended.
        longest: bytes that an output may have.
    """

    def __init__(self, channel: socket.socket, end: Callable[[], str], longest: int) -> None:
        self._channel = channel
        self._channel.setblocking(False)
        self._end = end
        self._inflow = Inflow(longest)
        self._outflow = Outflow()
        self._frames: list[bytearray | Shared] = []
        self._number: int | None = None
        #: The tasks of the last execution for which it was called and that it has not answered.
        self.owed: set[int] = set()
        #: How many executions it has served.
        self.executions = 0

    def fileno(self) -> int:
        """The descriptor to wait on."""
        return self._channel.fileno()

    @property
    def sending(self) -> bool:
        """Whether there is more to send when the socket takes it."""
        return bool(self._outflow)

    @property
    def receiving(self) -> bool:
        """What it answers is wanted at any time."""
        return True

    def post(self, request: Request) -> None:
        """Call it: what does not fit into the socket now goes out with `flush`."""
        if request.ident.number != self._number:
            self._number = request.ident.number
            self.executions += 1
        self.owed.update(request.tasks)
        self._outflow.push(request.frames_within())
        self.flush()

    def flush(self) -> None:
        """Send more of what is left. That it has died, `receive` will tell."""
        try:
            self._outflow.flush(self._channel)
        except OSError:
            self._outflow = Outflow()

    def receive(self) -> list[Result]:
        """The results that have arrived whole. Raises ProcessDiedError at the end of the stream."""
        try:
            return self._received()
        except (ValueError, TypeError) as error:
            raise ProcessDiedError(f"sent something that is no result ({error})") from error

    def _received(self) -> list[Result]:
        try:
            frames = self._inflow.receive(self._channel)
        except BlockingIOError:
            return []
        except OSError:
            frames = None
        if frames is None:
            raise ProcessDiedError
        self._frames += frames
        whole = len(self._frames) // 2 * 2
        results = Result.read(self._frames[:whole])
        del self._frames[:whole]
        for result in results:
            if result.number != self._number or result.task not in self.owed:
                raise ProcessDiedError("sent the result of another execution")
            if result.place is None:  # else it goes on
                self.owed.discard(result.task)
        return results

    def alive(self) -> bool:
        """Whether its end of the socket is open and it has said nothing unasked."""
        try:
            self._channel.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def end(self) -> str:
        """Kill it, with all that it started, and say how it ended."""
        self._channel.close()
        return self._end()

    def close(self) -> None:
        """Let it go: it ends when it has noticed."""
        self._channel.close()
