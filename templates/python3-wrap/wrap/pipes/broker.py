"""Connects the tasks of an execution that write streams with those that read them.

Either end may be asked for first. Within a wrap it is one of a pair of sockets, between two wraps a
connection of its own. A further process asks the main one, and gets a descriptor. It asks at an
address that every process of the machine may find: those of other users are refused.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from wrap.config.redaction import redacted
from wrap.config.wrap_spec import Wrap
from wrap.core.errors import TaskError
from wrap.core.executions import EARLY_S
from wrap.event_loop.liveness import essential
from wrap.event_loop.loop import Loop
from wrap.event_loop.threads import ThreadPool
from wrap.pipes.frames import lost

if TYPE_CHECKING:
    from wrap.pipes.piecewise import Client

#: The reader of what the task that answers writes.
CLIENT = -1
#: The kind of the message after which a connection is a stream.
STREAM = "stream"
#: The most bytes of what a further process asks, and of an error that it gets.
_SAID = 1 << 12
#: The abstract address at which further processes ask: see `ask_at`.
_address = ""
#: How long who has connected may take to ask, in seconds.
_ASK_S = 5.0
#: socket(7), SO_PEERCRED: the process, its user and its group.
_CREDENTIALS = struct.Struct("iII")
#: How often is looked whether an end has come, in seconds.
_LOOK_S = 0.2


class Which(NamedTuple):
    """A stream: of an execution, the output of that number, read by that task."""

    execution: int
    output: int
    reader: int
    attempt: int = 0


#: Gives the end of a stream that writes, or the one that reads.
Open = Callable[[Which, bool], socket.socket]
#: Connects to a wrap that takes part in an execution, to write a stream, as long as that is wanted.
Connect = Callable[[str, Which, Callable[[], bool]], socket.socket]


class Opened:
    """The streams of an execution that runs here.

    Parameters
    ----------
    attempt_of
        A method that gives the attempt of a task that opens a stream, None where that is over.
    client
        Whom the task that answers may write to; None where its answer goes as a whole.

    Attributes
    ----------
    held
        The ends that tasks of the main process have.
    since
        Reader -> its attempt, of those that are not in their first one: earlier ones are over.
    """

    def __init__(
        self,
        execution: int,
        attempt_of: Callable[[int], int | None],
        client: Client | None = None,
    ) -> None:
        self.execution = execution
        self.client = client
        # Else what an execution has would stay until cycles are looked for.
        self._attempt_of = weakref.WeakMethod(attempt_of)
        self.held: dict[Which, weakref.WeakSet[socket.socket]] = {}
        self.since: dict[int, int] = {}

    def attempt_of(self, task: int) -> int | None:
        """The attempt that a task is in which opens a stream; None where that is over."""
        attempt_of = self._attempt_of()
        return None if attempt_of is None else attempt_of(task)

    def is_over(self, which: Which) -> bool:
        """Whether a stream is of an attempt that is over."""
        return which.attempt < self.since.get(which.reader, 0)


class Broker:
    """In the main process.

    Parameters
    ----------
    connect
        None where the wrap runs all of the workflow.
    """

    def __init__(
        self, wrap: Wrap, threads: ThreadPool, loop: Loop, connect: Connect | None
    ) -> None:
        self._wrap = wrap
        self._threads = threads
        self._loop = loop
        self._connect = connect
        self._waiting: dict[Which, socket.socket] = {}
        self._opened: dict[int, Opened] = {}
        self._refused = 0
        self._changed = threading.Condition()

    def serve(self) -> None:
        """Answer further processes from now on."""
        server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        server.bind(f"\0{_address}")
        server.listen()
        os.register_at_fork(after_in_child=server.close)
        essential(partial(self._accept, server), "streams")

    def begin(self, opened: Opened) -> None:
        """An execution begins, and its tasks may ask."""
        with self._changed:
            self._opened[opened.execution] = opened

    def end(self, opened: Opened) -> None:
        """An execution has ended: whatever still waits for a stream of it waits no longer.

        It may have begun here once more; what has come for that is left alone.
        """
        with self._changed:
            if self._opened.get(opened.execution) is opened:
                del self._opened[opened.execution]
        self._break_off(
            opened, lambda which: which.attempt <= opened.since.get(which.reader, which.attempt)
        )

    def next(self, opened: Opened, tasks: Iterable[int], attempt: int) -> None:
        """Another attempt of some tasks begins: the streams of those before break off."""
        with self._changed:
            opened.since.update(dict.fromkeys(tasks, attempt))
        self._break_off(opened, opened.is_over)

    def open(self, which: Which, writes: bool) -> socket.socket:
        """An end of a stream. Raises TaskError where there is none."""
        which, end = self._end(which, writes)
        with self._changed:
            opened = self._opened.get(which.execution)
            if opened is not None and not opened.is_over(which):
                opened.held.setdefault(which, weakref.WeakSet()).add(end)
                return end
        end.close()
        raise _over()

    def _break_off(self, opened: Opened, is_over: Callable[[Which], bool]) -> None:
        with self._changed:
            own = [each for each in self._waiting if each.execution == opened.execution]
            ends = [self._waiting.pop(each) for each in own if is_over(each)]
            held = [opened.held.pop(each) for each in list(opened.held) if is_over(each)]
            self._changed.notify_all()
        for end in ends:
            end.close()
        for end in (each for its in held for each in its):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    @property
    def in_hand(self) -> bool:
        """Whether streams wait for an execution that has not begun here."""
        with self._changed:
            return any(which.execution not in self._opened for which in self._waiting)

    def expects(self, execution: int) -> bool:
        """Whether an execution runs here, or streams of it wait."""
        with self._changed:
            waits = any(which.execution == execution for which in self._waiting)
            return waits or execution in self._opened

    def arrived(self, which: Which, channel: socket.socket) -> None:
        """Another wrap is about to write a stream that is read here."""
        if which.reader == CLIENT:
            self._write_to_client(which, channel)
            return
        with self._changed:
            opened = self._opened.get(which.execution)
            if opened is not None and opened.is_over(which):
                channel.close()
                return
            self._waiting[which] = channel
            self._changed.notify_all()
        self._loop.call_at(time.monotonic() + EARLY_S, partial(self._forget, which, channel))

    def _forget(self, which: Which, channel: socket.socket) -> None:
        with self._changed:
            early = which.execution not in self._opened and self._waiting.get(which) is channel
            if early:
                del self._waiting[which]
        if early:
            channel.close()

    def _end(self, which: Which, writes: bool) -> tuple[Which, socket.socket]:
        if which.reader == CLIENT:
            return which, self._client_of(which).open(which)
        reader, writer = which.reader, self._wrap.giver_of(which.output)
        opened = self._opened.get(which.execution)
        attempt = None if opened is None else opened.attempt_of(writer if writes else reader)
        if attempt is None:
            raise _over()
        which = which._replace(attempt=attempt)
        there = self._wrap.wrap_of[reader if writes else writer]
        if there == self._wrap.name:
            return which, self._half(which)
        if not writes:
            return which, self._come(which)
        if self._connect is None:
            raise _over()
        return which, self._connect(there, which, partial(self._is_wanted, which))

    def _write_to_client(self, which: Which, channel: socket.socket) -> None:
        try:
            self._client_of(which).take(channel)
        except TaskError:  # the execution is over, or the client has got an answer
            channel.close()

    def _client_of(self, which: Which) -> Client:
        opened = self._opened.get(which.execution)
        if opened is None or opened.client is None:
            raise _over()
        return opened.client

    def _is_wanted(self, which: Which) -> bool:
        opened = self._opened.get(which.execution)
        return opened is not None and not opened.is_over(which)

    def _half(self, which: Which) -> socket.socket:
        """One of a pair, to whoever asks first, and the other one to the other side."""
        with self._changed:
            if not self._is_wanted(which):
                raise _over()
            if which in self._waiting:
                return self._waiting.pop(which)
            ours, self._waiting[which] = socket.socketpair()
            return ours

    def _come(self, which: Which) -> socket.socket:
        with self._changed:
            while which not in self._waiting:
                if not self._is_wanted(which):
                    raise _over()
                self._changed.wait(_LOOK_S)
            return self._waiting.pop(which)

    def _accept(self, server: socket.socket) -> None:
        while True:
            with contextlib.suppress(OSError, RuntimeError):  # it is asked again, or fails
                channel, _ = server.accept()
                if (user := _user_of(channel)) == os.geteuid():
                    self._threads.start(partial(self._answer, channel))
                else:
                    channel.close()
                    self._refuse(user)

    def _refuse(self, user: int) -> None:
        self._refused += 1
        if self._refused & (self._refused - 1) == 0:  # else whoever connects fills the log
            print(f"user {user} was refused streams, the {self._refused}. so far")

    def _answer(self, channel: socket.socket) -> None:
        # Who asks may be gone, and what is said may be no question.
        with channel, contextlib.suppress(OSError, ValueError, TypeError):
            channel.settimeout(_ASK_S)
            *which, writes = json.loads(channel.recv(_SAID))
            try:
                with self._end(Which(*which), writes)[1] as end:
                    socket.send_fds(channel, [b"{}"], [end.fileno()])
            except TaskError as error:
                channel.send(json.dumps(error.as_dict(redacted)).encode())


def _user_of(channel: socket.socket) -> int:
    """The user of the process that has connected, as the kernel has it."""
    _, user, _ = _CREDENTIALS.unpack(
        channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    )
    return int(user)


def ask_at(address: str) -> None:
    """Set where this process, and those that it forks, ask for streams."""
    global _address
    _address = address


def ask(which: Which, writes: bool) -> socket.socket:
    """`Broker.open`, for a further process."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
            channel.connect(f"\0{_address}")
            channel.send(json.dumps([*which, writes]).encode())
            said, descriptors, _, _ = socket.recv_fds(channel, _SAID, 1)
    except OSError:
        raise _over() from None
    if not descriptors:
        raise TaskError.from_dict(json.loads(said), status=500) if said else _over()
    return socket.socket(fileno=descriptors[0])


def _over() -> TaskError:
    return lost("the execution is over")
