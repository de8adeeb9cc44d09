"""The ways of a task's outputs to those that read them as streams.

A writer waits for its slowest reader. When what a reader is to get goes to disk is in
`wrap.core.slow_readers`. What goes there is bounded (`wrap.values.disk`): above the bound the
writer waits again, until the reader has taken what is on disk. The writer fails at once where
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
from wrap.core import slow_readers
from wrap.core.errors import TaskError
from wrap.pipes.frames import BUFFER, FAILED, LENGTH, LOOK_MS, lost
from wrap.values.disk import Backlog


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
    took
        When the reader took something last, in seconds of the monotonic clock.
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
        self.took = time.monotonic()

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
                self.took = time.monotonic()
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
            self.took = time.monotonic()
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
            if slow_readers.may_be_circle(self, time.monotonic()):
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
        wait_ms = 1 + 1000 * slow_readers.look_again_s(waiting, time.monotonic())
        for number, _ in poll.poll(min(LOOK_MS, wait_ms)):
            by_number[number].flush()
        for each in slow_readers.stuck(waiting, self._all, time.monotonic()):
            each.spill()
