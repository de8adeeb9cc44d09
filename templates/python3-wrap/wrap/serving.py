"""Serves a WSGI application with waitress, until SIGTERM; then finishes what is in flight.

Listens on the socket that ``LISTEN_FD`` names, else on ``host`` and ``port``. The runner of
plain handlers has this file too; it imports nothing of the wrap runtime.
"""

from __future__ import annotations

import io
import logging
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NoReturn

import waitress
from waitress import wasyncore
from waitress.buffers import ReadOnlyFileBasedBuffer
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.receiver import FixedStreamReceiver
from waitress.task import WSGITask

#: Where a WSGI environment has the time, of the monotonic clock, at which the request was whole.
#: It may have waited for a thread since then.
ARRIVED = "chiron.arrived"
#: How long requests in flight may take after SIGTERM, where the caller does not say.
_DRAIN_S = 5.0
#: Read from a connection at once; waitress would take 8 KiB, each with a round of its loop.
_READ = 1 << 18
#: Bodies up to this size stay in memory; waitress would put them into files from 512 KiB on.
_IN_MEMORY = 64 << 20
#: Pieces of a body from this size on stay where they lie: waitress's own buffers copy them.
_LARGE = 1 << 16
_CONNECTIONS = 1000
_STOP = (signal.SIGTERM, signal.SIGINT)
_leave = os._exit  # the wrap runtime replaces it for handlers


def listen(environment: Mapping[str, str]) -> socket.socket:
    """The listening socket. Raises OSError, for example when the port is in use."""
    if inherited := environment.get("LISTEN_FD"):
        listener = socket.socket(fileno=int(inherited))
        listener.set_inheritable(False)
        return listener
    host = environment.get("host", "0.0.0.0")  # noqa: S104 (in a container, behind the watchdog)
    return socket.create_server((host, int(environment.get("port", "5000"))))


def serve(
    app: Callable[..., Iterable[bytes]],
    listener: socket.socket,
    threads: int,
    drain_s: float = _DRAIN_S,
    close: Callable[[], None] = lambda: None,
) -> NoReturn:
    """Serve `app` on `threads` threads; exits 0 after SIGTERM or SIGINT.

    Parameters
    ----------
    drain_s
        How long requests in flight may take then.
    close
        Called when the last request has been answered.
    """
    # A queue that is used is no news, and a line a request is what it would cost.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    channels: dict[int, Any] = {}
    server = waitress.create_server(
        app,
        map=channels,
        sockets=[listener],
        threads=threads,
        recv_bytes=_READ,
        connection_limit=_CONNECTIONS,
        inbuf_overflow=_IN_MEMORY,
        outbuf_overflow=_IN_MEMORY,
        ident=None,
    )
    server.channel_class = _Channel
    # A process that a handler forks may be told to end before it has begun: that waits.
    os.register_at_fork(
        before=partial(signal.pthread_sigmask, signal.SIG_BLOCK, _STOP),
        after_in_parent=partial(signal.pthread_sigmask, signal.SIG_UNBLOCK, _STOP),
        after_in_child=partial(_let_go, channels),
    )
    stopping: list[int] = []

    def stop(number: int, _frame: object) -> None:
        stopping.append(number)
        server.pull_trigger()  # the loop may be asleep

    for number in _STOP:
        signal.signal(number, stop)
    while not stopping:
        wasyncore.loop(timeout=1, use_poll=True, map=channels, count=1)
    while _is_called(listener):  # what has connected counts as in flight
        server.handle_accept()
    server.accepting = False
    end = time.monotonic() + drain_s
    wasyncore.loop(timeout=0, use_poll=True, map=channels, count=1)
    while _in_flight(server) and time.monotonic() < end:
        wasyncore.loop(timeout=0.05, use_poll=True, map=channels, count=1)
    listener.close()
    close()
    sys.stdout.flush()
    sys.stderr.flush()
    _leave(0)  # threads that a handler has left behind have no say in when this ends


class OneProcess:
    """A block that only the process which entered it leaves: one forked within it ends instead.

    Else two would answer where one was asked. It ends as a program does: with the status of
    ``sys.exit``, or with a traceback and 1.
    """

    def __enter__(self) -> OneProcess:
        self._here = os.getpid()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self.check(error)

    def check(self, error: BaseException | None = None) -> None:
        """Return in the process that entered the block; any other ends here."""
        if os.getpid() != self._here:
            _end(error)


def _end(error: BaseException | None) -> NoReturn:
    code = error.code if isinstance(error, SystemExit) else int(error is not None)
    try:
        if not isinstance(code, int | None):
            print(code, file=sys.stderr)
        elif error is not None and not isinstance(error, SystemExit):
            traceback.print_exception(error)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:  # a handler may have put anything there
        _leave(code & 0xFF if isinstance(code, int) else int(code is not None))


def _let_go(channels: Mapping[int, Any]) -> None:
    """In a process that a handler has forked: hold no port and no connection, end when told to."""
    for channel in list(channels.values()):
        channel.socket.close()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP)


class _Task(WSGITask):  # type: ignore[misc]
    def get_environment(self) -> dict[str, Any]:
        """WSGI's, and when the request arrived."""
        environment: dict[str, Any] = super().get_environment()
        environment[ARRIVED] = self.channel.arrived
        return environment

    def build_response_header(self) -> bytes:
        """As ever, but that a server that is about to end keeps no connection."""
        if not self.channel.server.accepting:
            self.set_close_on_finish()
        return bytes(super().build_response_header())


class LargeBody(io.RawIOBase):
    """A large body: what takes it in as it comes, and the file from which it is read.

    Its place is made at the beginning; the kernel gives memory only for what has come. waitress
    would put it into a file object, which grows with every piece and is copied on the way, and a
    last time when it is read.
    """

    def __init__(self, length: int) -> None:
        self._bytes = bytearray(length)
        self._come = 0
        self._read = 0

    def __len__(self) -> int:
        return self._come

    def append(self, piece: bytes) -> None:
        """Take in what came next."""
        end = self._come + len(piece)
        self._bytes[self._come : end] = piece
        self._come = end

    def getfile(self) -> LargeBody:
        """The file that has the body."""
        return self

    def whole(self) -> bytearray:
        """All of it, not copied."""
        return self._bytes

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Copy what comes next, as much as fits."""
        piece = memoryview(self._bytes)[self._read : self._read + len(buffer)]
        buffer[: len(piece)] = piece
        self._read += len(piece)
        return len(piece)

    def readall(self) -> bytes:
        """All that is left, copied once."""
        rest = bytes(memoryview(self._bytes)[self._read :])
        self._read = len(self._bytes)
        return rest


class _Parser(HTTPRequestParser):  # type: ignore[misc]
    def parse_header(self, header_plus: bytes) -> None:
        """As ever; decides where the body goes."""
        super().parse_header(header_plus)
        if _LARGE <= self.content_length <= _IN_MEMORY:
            self.body_rcv = FixedStreamReceiver(self.content_length, LargeBody(self.content_length))


class _Uncopied(ReadOnlyFileBasedBuffer):  # type: ignore[misc]
    """A large piece of an answer.

    waitress's other buffers copy it, and then, at each turn, as much as a socket takes at most,
    which for 10 MB comes to several times what is sent.
    """

    def __init__(self, piece: bytes) -> None:
        self._rest = memoryview(piece)

    def __len__(self) -> int:
        return len(self._rest)

    def get(self, numbytes: int = -1, skip: bool = False) -> memoryview:
        """The next `numbytes` bytes, or all that are left; they stay until they are skipped."""
        return self._rest if numbytes < 0 else self._rest[:numbytes]

    def skip(self, numbytes: int, allow_prune: bool = False) -> None:
        """Be done with the next `numbytes` bytes."""
        self._rest = self._rest[numbytes:]

    def close(self) -> None:
        """Be done with all of it."""
        self._rest = memoryview(b"")


class _Channel(HTTPChannel):  # type: ignore[misc]
    task_class = _Task
    parser_class = _Parser
    arrived = 0.0

    def service(self) -> None:
        """Answer a request."""
        with OneProcess() as self._process:
            super().service()

    def write_soon(self, data: bytes) -> int:
        """Send `data` once the connection takes it."""
        self._process.check()  # a body may fork while it is made
        large = isinstance(data, bytes) and len(data) >= _LARGE
        return int(super().write_soon(_Uncopied(data) if large else data))

    def received(self, data: bytes) -> bool:
        """Part of a request has come, perhaps its last one."""
        self.arrived = time.monotonic()
        return bool(super().received(data))


def _is_called(listener: socket.socket) -> bool:
    return bool(select.select([listener], [], [], 0)[0])


def _in_flight(server: Any) -> bool:
    """Whether a request is here: in part, in work, or its answer not yet sent."""
    return any(
        channel.requests or channel.total_outbufs_len or channel.request is not None
        for channel in server.active_channels.values()
    )
