"""The ways of a task's outputs to those that read them as streams.

A writer waits for its slowest reader, so that no stream takes more memory than its buffers. That
alone could have tasks wait for each other in a circle: a reads what b writes and does not take what
c has for it, while b waits for c. In a graph without cycles every such circle has a writer in it
that waits for one reader while another one waits for that writer. So where a reader has taken
nothing for a moment, and another one of the same task has taken all, what the first is to get goes
to disk, and the writer goes on. What goes there is bounded (`wrap.values.disk`): above the bound
the writer waits again, until the reader has taken what is on disk. The writer fails at once where
the disk is full. At the bound it fails where the reader has taken nothing for some seconds, since
that may be a circle.

References
----------
Floki: tasks that run at the same time, with streams of bounded buffers between them.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import select
import socket
import termios
import threading
import time
from collections.abc import Iterable, Sequence

from wrap.config.redaction import redacted
from wrap.core.errors import TaskError
from wrap.pipes.frames import BUFFER, FAILED, LENGTH, LOOK_MS, lost
from wrap.values.disk import Backlog

#: For how long a reader takes nothing before what it is to get may go to disk, in seconds.
_PATIENCE_S = 0.1
#: The same before a writer fails that has to wait although as much is on disk as may be.
_CIRCLE_S = 5.0
#: How often is looked whether another reader has taken all meanwhile, in milliseconds.
_STUCK_MS = 20


class Outlet:
    """The way to one reader.

    Parameters
    ----------
    channel
        A socket, whose other end the reader has.
    reader
        Its function, by which errors name it.

    Attributes
    ----------
    broken
        What was raised, where the reader is gone.
    """

    def __init__(self, channel: socket.socket, reader: str) -> None:
        channel.setblocking(False)
        self._channel = channel
        self._reader = reader
        self.broken: TaskError | None = None
        self._left: list[bytes | memoryview] = []
        self._spilled: Backlog | None = None
        #: What comes after that on disk, which has no room for it.
        self._later: list[bytes | memoryview] = []
        self._took = time.monotonic()

    def fileno(self) -> int:
        """The descriptor to wait on."""
        return self._channel.fileno()

    @property
    def sending(self) -> bool:
        """Whether there is more to send when the reader takes more."""
        return bool(self._left) or self._spilled is not None

    @property
    def held_up(self) -> bool:
        """Whether the writer has to wait: what goes to disk is no reason to."""
        return bool(self._left if self._spilled is None else self._later)

    @property
    def starves(self) -> bool:
        """Whether the reader has got all that there is for it."""
        room = fcntl.ioctl(self._channel, termios.TIOCOUTQ, bytes(4))
        return not self.sending and not int.from_bytes(room, "little")

    @property
    def patience_s(self) -> float:
        """How long it may still take nothing before what it is to get goes to disk."""
        return self._took + _PATIENCE_S - time.monotonic()

    def put(self, pieces: Iterable[bytes | memoryview]) -> None:
        """Send bytes, as far as the reader takes them now.

        Raises TaskError where it is gone, OSError where they have to go to disk and that is full.
        """
        if self._spilled is not None:
            pieces = list(pieces)
            if self._later or not self._spilled.has_room(sum(map(len, pieces))):
                self._wait_for_disk(pieces)
            else:
                self._spilled.put(pieces)
        else:
            if not self._left:
                self._took = time.monotonic()
            self._left += pieces
        self.flush()

    def flush(self) -> None:
        """Send more of what is left."""
        while self._left or self._refill():
            try:
                sent = self._channel.sendmsg(self._left)
            except BlockingIOError:
                return
            except OSError:
                self.broken = lost(f"{self._reader} stopped before it had read its stream")
                raise self.broken from None
            self._took = time.monotonic()
            left = self._left
            while left and sent >= len(left[0]):
                sent -= len(left.pop(0))
            if sent:
                left[0] = memoryview(left[0])[sent:]

    def spill(self) -> None:
        """Have what is left on disk, so that the writer need not wait.

        At the bound it goes on waiting. Raises OSError where the disk is full, and at the bound
        where the reader has taken nothing for long.
        """
        if self._spilled is not None:
            if time.monotonic() > self._took + _CIRCLE_S:
                raise OSError(errno.ENOSPC, f"{self._on_disk()}, and it reads nothing")
        else:
            spilled = Backlog()
            try:
                spilled.put(self._left)
            except BaseException:
                spilled.close()
                raise
            self._spilled, self._left = spilled, []

    def _wait_for_disk(self, pieces: Iterable[bytes | memoryview]) -> None:
        if not self._later:
            print(f"{self._on_disk()}: their writer waits until they are read")
        self._later += pieces

    def _on_disk(self) -> str:
        size = len(self._spilled or ())
        return f"{size} bytes for {self._reader} are on disk, half of what is free there"

    def close(self, error: TaskError | None = None) -> None:
        """Be done with it; a reader that has not got all learns of `error`."""
        if error is not None and not self.sending:
            said = json.dumps(error.as_dict(redacted)).encode()
            with contextlib.suppress(TaskError):
                self.put([LENGTH.pack(FAILED), LENGTH.pack(len(said)), said])
        if self._spilled is not None:
            self._spilled.close()
        self._channel.close()

    def _refill(self) -> bool:
        """Read on in what is on disk, and then after it; whether there is more."""
        if self._spilled is None:
            return False
        data = self._spilled.take(BUFFER)
        if data:
            self._left = [data]
        else:
            self._spilled.close()
            self._spilled = None
            self._left, self._later = self._later, []
        return bool(self._left)


class Outlets:
    """The ways to all readers of a task's outputs; any of its threads may write."""

    def __init__(self) -> None:
        self._all = list[Outlet]()
        self._failure: OSError | None = None
        self._lock = threading.Lock()

    def add(self, outlet: Outlet) -> None:
        """There is one more."""
        with self._lock:
            self._all.append(outlet)

    def send(self, outlets: Sequence[Outlet], pieces: Iterable[bytes | memoryview]) -> None:
        """Send bytes to some of the readers, as soon as these take them.

        Raises TaskError where one is gone, OSError where the disk is full. It raises that again for
        whatever follows, since readers lack what came before.
        """
        with self._lock:
            if self._failure is not None:
                raise self._failure
            try:
                for outlet in outlets:
                    outlet.put(pieces)
                while waiting := [outlet for outlet in outlets if outlet.held_up]:
                    self._wait(waiting)
            except OSError as error:
                self._failure = error
                raise

    def finish(self) -> None:
        """Wait until all have taken what there is for them, also what is on disk."""
        with self._lock:
            while waiting := [outlet for outlet in self._all if outlet.sending]:
                self._wait(waiting)

    @property
    def broken(self) -> TaskError | None:
        """What was raised, where a reader is gone."""
        return next((each.broken for each in self._all if each.broken is not None), None)

    def close(self, error: TaskError | None = None) -> None:
        """Be done with all; those that have not got all learn of `error`."""
        for outlet in self._all:
            outlet.close(error)

    def _wait(self, waiting: Sequence[Outlet]) -> None:
        poll = select.poll()
        by_number = {each.fileno(): each for each in self._all if each.sending}
        for number in by_number:
            poll.register(number, select.POLLOUT)
        patience_s = min(each.patience_s for each in waiting)
        wait_ms = 1 + 1000 * patience_s if patience_s > 0 else _STUCK_MS
        for number, _ in poll.poll(min(LOOK_MS, wait_ms)):
            by_number[number].flush()
        stuck = [each for each in waiting if each.held_up and each.patience_s <= 0]
        if stuck and any(each.starves for each in self._all):
            for each in stuck:
                each.spill()
