"""The connections from a task's outputs to the readers of its streams.

A writer waits for its slowest reader. The rule in `wrap.core.slow_readers` decides when the data of
a slow reader goes to disk. The disk space is bounded (`wrap.values.disk`): above the bound the
writer waits again, until the reader has taken the data on disk. The writer fails at once if the
disk is full. At the bound it fails if the reader has taken nothing for some seconds: the tasks may
wait for each other in a circle.

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
    """The connection to one reader.

    Args:
        channel: a socket whose other end the reader has.
        reader: the name of the function that reads, for errors.
    """

    def __init__(self, channel: socket.socket, reader: str) -> None:
        channel.setblocking(False)
        self._channel = channel
        self._reader = reader
        #: The error raised because the reader is gone.
        self.broken: TaskError | None = None
        self._left: list[bytes | memoryview] = []
        self._spilled: Backlog | None = None
        #: Bytes after the data on disk, for which the disk has no room.
        self._later: list[bytes | memoryview] = []
        #: When the reader last took bytes, in seconds of the monotonic clock.
        self.last_read = time.monotonic()

    def fileno(self) -> int:
        return self._channel.fileno()

    @property
    def sending(self) -> bool:
        """Whether there are bytes to send as soon as the reader takes them."""
        return bool(self._left) or self._spilled is not None

    @property
    def held_up(self) -> bool:
        """Whether the writer must wait; not for bytes that go to disk."""
        return bool(self._left if self._spilled is None else self._later)

    @property
    def has_read_all(self) -> bool:
        """Whether the reader has taken all bytes sent to it."""
        room = fcntl.ioctl(self._channel, termios.TIOCOUTQ, bytes(4))
        return not self.sending and not int.from_bytes(room, "little")

    def put(self, pieces: Iterable[bytes | memoryview]) -> None:
        """Send as many bytes as the reader takes now, and keep the rest.

        Raises TaskError if the reader is gone, OSError if bytes must go to a full disk.
        """
        if self._spilled is not None:
            pieces = list(pieces)
            if self._later or not self._spilled.has_room(sum(map(len, pieces))):
                self._wait_for_disk(pieces)
            else:
                self._spilled.put(pieces)
        else:
            if not self._left:
                self.last_read = time.monotonic()
            self._left += pieces
        self.flush()

    def flush(self) -> None:
        while self._left or self._refill():
            try:
                sent = self._channel.sendmsg(self._left)
            except BlockingIOError:
                return
            except OSError:
                self.broken = lost(f"{self._reader} stopped before it had read its stream")
                raise self.broken from None
            self.last_read = time.monotonic()
            left = self._left
            while left and sent >= len(left[0]):
                sent -= len(left.pop(0))
            if sent:
                left[0] = memoryview(left[0])[sent:]

    def spill(self) -> None:
        """Write the remaining bytes to disk, so that the writer need not wait.

        At the bound the writer goes on waiting. Raises OSError if the disk is full; at the bound,
        if the reader has taken nothing for long.
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
        """Close the connection; a reader that lacks no earlier bytes gets `error`, if any."""
        if error is not None and not self.sending:
            said = json.dumps(error.as_dict(redacted)).encode()
            with contextlib.suppress(TaskError):
                self.put([LENGTH.pack(FAILED), LENGTH.pack(len(said)), said])
        if self._spilled is not None:
            self._spilled.close()
        self._channel.close()

    def _refill(self) -> bool:
        """Take the next bytes from disk, then those after them; return whether there are any."""
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
    """The connections to all readers of a task's outputs; any of the task's threads may write."""

    def __init__(self) -> None:
        self._all: list[Outlet] = []
        self._failure: OSError | None = None
        self._lock = threading.Lock()

    def add(self, outlet: Outlet) -> None:
        with self._lock:
            self._all.append(outlet)

    def send(self, outlets: Sequence[Outlet], pieces: Iterable[bytes | memoryview]) -> None:
        """Send bytes to some of the readers, and wait until they are taken or on disk.

        Raises TaskError if a reader is gone, OSError if the disk is full. After an OSError every
        further call raises it again, because readers lack the earlier bytes.
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
        """Wait until all readers have taken all bytes, including those on disk."""
        with self._lock:
            while waiting := [outlet for outlet in self._all if outlet.sending]:
                self._wait(waiting)

    @property
    def broken(self) -> TaskError | None:
        """The error of the first reader that is gone; None if all are there."""
        return next((each.broken for each in self._all if each.broken is not None), None)

    def close(self, error: TaskError | None = None) -> None:
        for outlet in self._all:
            outlet.close(error)

    def _wait(self, waiting: Sequence[Outlet]) -> None:
        poll = select.poll()
        by_number = {each.fileno(): each for each in self._all if each.sending}
        for number in by_number:
            poll.register(number, select.POLLOUT)
        wait_ms = 1 + 1000 * slow_readers.next_check_s(waiting, time.monotonic())
        for number, _ in poll.poll(min(LOOK_MS, wait_ms)):
            by_number[number].flush()
        for each in slow_readers.stuck(waiting, self._all, time.monotonic()):
            each.spill()
