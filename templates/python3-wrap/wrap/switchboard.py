"""Connects the tasks of an execution that write streams with those that read them.

Either end may be asked for first. Within a wrap it is one of a pair of sockets, between two wraps a
connection of its own. A further process asks the main one, and gets a descriptor.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from wrap.declaration import Wrap
from wrap.ends import lost
from wrap.errors import TaskError
from wrap.loop import Loop
from wrap.threads import ThreadPool

#: The kind of the message after which a connection is a stream.
STREAM = "stream"
#: Where further processes ask, and how long what they say may be.
_PLACE, _SAID = "CHIRON_STREAMS", 1 << 12
#: How long an end is kept that came from another wrap before the execution began here, in seconds.
_EARLY_S = 30.0
#: How often is looked whether an end has come, in seconds.
_LOOK_S = 0.2


class Which(NamedTuple):
    """A stream: of an execution, the output of that number, read by that task."""

    execution: int
    output: int
    reader: int


#: Gives the end of a stream that writes, or the one that reads.
Open = Callable[[Which, bool], socket.socket]
#: Connects to a wrap that takes part in an execution, to write a stream.
Connect = Callable[[str, Which], socket.socket]


class Switchboard:
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
        #: Of the executions that run here, the ends that tasks of this process have.
        self._held: dict[int, weakref.WeakSet[socket.socket]] = {}
        self._changed = threading.Condition()

    def serve(self) -> None:
        """Answer further processes from now on."""
        server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        server.bind(f"\0{os.environ[_PLACE]}")
        server.listen()
        os.register_at_fork(after_in_child=server.close)
        threading.Thread(target=self._accept, args=(server,), name="streams", daemon=True).start()

    def begin(self, execution: int) -> None:
        """An execution begins, and its tasks may ask."""
        with self._changed:
            self._held.setdefault(execution, weakref.WeakSet())

    def end(self, execution: int) -> None:
        """An execution has ended: whatever still waits for a stream of it waits no longer."""
        with self._changed:
            held = self._held.pop(execution, ())
            waiting = [which for which in self._waiting if which.execution == execution]
            ends = [self._waiting.pop(which) for which in waiting]
            self._changed.notify_all()
        for each in ends:
            each.close()
        for each in held:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def open(self, which: Which, writes: bool) -> socket.socket:
        """An end of a stream. Raises TaskError where there is none."""
        end = self._end(which, writes)
        with self._changed:
            if (held := self._held.get(which.execution)) is not None:
                held.add(end)
                return end
        end.close()
        raise _over()

    def arrived(self, which: Which, channel: socket.socket) -> None:
        """Another wrap is about to write a stream that is read here."""
        with self._changed:
            self._waiting[which] = channel
            self._changed.notify_all()
        self._loop.call_at(time.monotonic() + _EARLY_S, partial(self._forget, which, channel))

    def _forget(self, which: Which, channel: socket.socket) -> None:
        with self._changed:
            early = which.execution not in self._held and self._waiting.get(which) is channel
            if early:
                del self._waiting[which]
        if early:
            channel.close()

    def _end(self, which: Which, writes: bool) -> socket.socket:
        there = self._wrap.wrap_of[which.reader if writes else self._wrap.giver_of(which.output)]
        if there == self._wrap.name:
            return self._half(which)
        if not writes:
            return self._come(which)
        if self._connect is None:
            raise _over()
        return self._connect(there, which)

    def _half(self, which: Which) -> socket.socket:
        """One of a pair, to whoever asks first, and the other one to the other side."""
        with self._changed:
            if which.execution not in self._held:
                raise _over()
            if which in self._waiting:
                return self._waiting.pop(which)
            ours, self._waiting[which] = socket.socketpair()
            return ours

    def _come(self, which: Which) -> socket.socket:
        with self._changed:
            while which not in self._waiting:
                if which.execution not in self._held:
                    raise _over()
                self._changed.wait(_LOOK_S)
            return self._waiting.pop(which)

    def _accept(self, server: socket.socket) -> None:
        while True:
            with contextlib.suppress(OSError, RuntimeError):  # it is asked again, or fails
                channel, _ = server.accept()
                self._threads.start(partial(self._answer, channel))

    def _answer(self, channel: socket.socket) -> None:
        with channel, contextlib.suppress(OSError):  # who asks may be gone
            *which, writes = json.loads(channel.recv(_SAID))
            try:
                with self._end(Which(*which), writes) as end:
                    socket.send_fds(channel, [b"{}"], [end.fileno()])
            except TaskError as error:
                channel.send(json.dumps(error.as_dict()).encode())


def announce() -> None:
    """Say where processes that are started from now on ask."""
    os.environ[_PLACE] = f"chiron-{os.urandom(16).hex()}"


def ask(which: Which, writes: bool) -> socket.socket:
    """`Switchboard.open`, for a further process."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
            channel.connect(f"\0{os.environ[_PLACE]}")
            channel.send(json.dumps([*which, writes]).encode())
            said, descriptors, _, _ = socket.recv_fds(channel, _SAID, 1)
    except OSError:
        raise _over() from None
    if not descriptors:
        raise TaskError.from_dict(json.loads(said), status=500) if said else _over()
    return socket.socket(fileno=descriptors[0])


def _over() -> TaskError:
    return lost("the execution is over")
