"""Serves a WSGI application with waitress, until SIGTERM; then finishes what is in flight.

Listens on the socket that ``LISTEN_FD`` names, else on ``host`` and ``port``. The runner of
plain handlers has this file too; it imports nothing of the wrap runtime.

What connections hold in memory follows what has arrived and what is not yet taken, and all of them
together hold a share of the replica's memory: where they would hold more, the connection that has
been silent for longest gives way.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import resource
import select
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.buffers import ReadOnlyFileBasedBuffer
from waitress.channel import ClientDisconnected, HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.receiver import FixedStreamReceiver
from waitress.server import TcpWSGIServer
from waitress.task import WSGITask
from waitress.utilities import BadRequest, Error, RequestEntityTooLarge

#: Where a WSGI environment has the time, of the monotonic clock, at which the request was whole.
#: It may have waited for a thread since then.
ARRIVED = "chiron.arrived"
#: Where it has what an application calls that answers later, by any thread: no thread waits for it.
#: It gets a function that takes the answer, a WSGI application; what it returns itself is dropped.
LATER = "chiron.later"
#: Where it has what says how many requests are in hand, and how many wait for their turn.
TURNS = "chiron.turns"
_REQUEST_OF = "chiron.request"
#: The HTTP status of a request whose client has not waited for its answer (nginx's), and of one
#: that the application has not answered.
_CLIENT_GONE, _NO_ANSWER = "499", "500"
#: How long requests in flight may take after SIGTERM, where the caller does not say.
_DRAIN_S = 5.0
#: Read from a connection at once; waitress would take 8 KiB, each with a round of its loop.
_READ = 1 << 18
#: Pieces of a body from this size on stay where they lie: waitress's own buffers copy them.
_LARGE = 1 << 16
#: Of what a replica may take, connections hold no more than this share, in bytes that have come or
#: not yet gone: the texts made of them take as much again, and so do the outputs.
_SHARE = 4
#: Of a head, or of what stands between the chunks of a body.
_HEAD, _FIELDS = 1 << 16, 256
#: What a request takes in memory beside its bytes.
_REQUEST = 1 << 12
#: Requests that may wait on one connection for their turn.
_PIPELINED = 8
#: A chunked body is read so much at a time: waitress copies what follows a chunk with each of them.
_CHUNKED = 1 << 13
#: Connections: no more than so many, and no more than this share of the descriptors.
_CONNECTIONS, _CONNECTIONS_SHARE = 1000, 2
#: Where room is made while more is read, so much is made, as a share of the bound.
_ROOM_SHARE = 8
#: Connections that are accepted between two looks at those that there are.
_AT_ONCE = 64
#: How long a connection may be silent, also where many others want its place, in seconds.
_MOMENT_S = 0.02
_STOP = (signal.SIGTERM, signal.SIGINT)
#: An answer of which the client takes nothing for so long, in seconds, is given up.
_STALLED_S, _LOOK_S = 30, 10
#: How often is looked whether the listener is still there, in seconds.
_LISTENER_LOOK_S = 1.0
#: How often a program that is to end or begin anew looks whether it can, in seconds.
_ENDING_S = 0.05
#: Longest wait of a thread until there is room for another answer, in seconds.
_RELIEF_S = 1.0
_NO_LINGER = struct.pack("ii", 1, 0)
_LISTENER, _KEPT = "LISTEN_FD", "KEPT_FDS"
_STARTED_IN, _STARTED_WITH = os.getcwd(), dict(os.environ)  # noqa: PTH109 (as execve has it)
_STARTED_AS, _ARGUMENTS = [sys.executable, *sys.orig_argv[1:]], sys.argv[1:]
_UMASK = os.umask(0o077)
os.umask(_UMASK)
_leave, _replace = os._exit, os.execve  # the wrap runtime replaces them for handlers
_bytearray = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t)(
    ("PyByteArray_FromStringAndSize", ctypes.pythonapi)
)


def unfilled(length: int) -> bytearray:
    """Room for `length` bytes, which takes memory only as it is filled.

    ``bytearray(length)`` writes zeros into all of it. What is in here before it is filled may be
    anything: hand on no more than has been written.
    """
    return _bytearray(None, length)  # type: ignore[no-any-return]


def within_descriptors(most: int, share: int) -> int:
    """No more than `most`, and than this share of the descriptors that the process may have."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = descriptors == resource.RLIM_INFINITY
    return most if unlimited else max(1, min(most, descriptors // share))


def keep(variable: str, value: str) -> None:
    """Have the program find `value` there when it begins anew."""
    _STARTED_WITH[variable] = value


def listen(environment: Mapping[str, str]) -> list[socket.socket]:
    """The listening socket, and connections that were kept when the program began anew.

    With ``suppress_lock`` the watchdog leaves it to its program to write the file by which probes
    see that the sandbox takes requests: it would itself do so before there is a socket.

    Raises OSError, for example when the port is in use.
    """
    if inherited := environment.get(_LISTENER):
        numbers = [inherited, *filter(None, environment.get(_KEPT, "").split(","))]
        sockets = [socket.socket(fileno=int(number)) for number in numbers]
        for each in sockets:
            each.set_inheritable(False)
        return sockets
    host = environment.get("host", "0.0.0.0")  # noqa: S104 (in a container, behind the watchdog)
    sockets = [socket.create_server((host, int(environment.get("port", "5000"))))]
    if environment.get("suppress_lock") == "true":
        Path(environment.get("TMPDIR", "/tmp"), ".lock").touch()  # noqa: S108 (the watchdog's)
    return sockets


def serve(
    app: Callable[..., Iterable[bytes]],
    sockets: Sequence[socket.socket],
    most: Callable[[], int],
    memory_bytes: int,
    start: Callable[[Callable[[], None]], object],
    *,
    probes: Collection[str] = ("/_/health",),
    drain_s: float = _DRAIN_S,
    linger_s: float = 0.0,
    ending: Callable[[], None] = lambda: None,
    close: Callable[[], int] = lambda: 0,
    worn: Callable[[], bool] = lambda: False,
    turned: Callable[[], None] = lambda: None,
    answered: Callable[[str, str, float], None] = lambda *_: None,
) -> NoReturn:
    """Serve `app`; exits after SIGTERM or SIGINT, with the status that `close` returns.

    Parameters
    ----------
    sockets
        What `listen` gave.
    most
        How many requests may be in hand at once; asked again whenever something happens.
    memory_bytes
        What the replica may take.
    start
        Has a thread do something.
    probes
        Paths of which a GET is answered at once, whatever the threads do; `app` must be quick.
    drain_s
        How long requests in flight may take in the end.
    linger_s
        How long new connections are taken even then: a watchdog is told to end at the same time,
        and hands on meanwhile what comes from who does not know it yet.
    ending
        Called as soon as the program is told to end.
    close
        Called when the last request has been answered.
    worn
        Whether the program is to begin anew, in this process, as soon as nothing is in flight.
        Connections stay: requests that come meanwhile wait in them.
    turned
        Called after each turn of the loop, at least once a second until `close` is called.
    answered
        Called for each request but probes, in any thread, with its method, the HTTP status of its
        answer, and the seconds that this took.
    """
    listener, *kept = sockets
    turns = _Turns(start)
    server = _Server(app, listener, memory_bytes // _SHARE, probes, turns, turned, answered)
    turns.set_thread_count(most())
    # A process that a handler forks may be told to end before it has begun: that waits.
    os.register_at_fork(
        before=partial(signal.pthread_sigmask, signal.SIG_BLOCK, _STOP),
        after_in_parent=partial(signal.pthread_sigmask, signal.SIG_UNBLOCK, _STOP),
        after_in_child=server.let_go,
    )
    for connection in kept:
        server.take(connection)
    stopping: list[int] = []

    def stop(number: int, _frame: object) -> None:
        stopping.append(number)
        server.pull_trigger()  # the loop may be asleep

    for number in _STOP:
        signal.signal(number, stop)
    try:
        own = _identity(listener)
        looked, lost, wearing = time.monotonic(), False, 0.0
        while not stopping:
            server.turn(_ENDING_S if wearing else 1)
            turns.set_thread_count(most())
            if time.monotonic() > looked + _LISTENER_LOOK_S:
                looked, lost = time.monotonic(), _identity(listener) != own
            if lost or worn():
                wearing = wearing or time.monotonic()
                if not server.in_flight(late=time.monotonic() > wearing + drain_s):
                    _begin_anew(server, None if lost else listener, close)
            else:
                wearing = 0.0  # enough threads have come back
        ending()
        lingering = time.monotonic() + linger_s
        while time.monotonic() < lingering:
            server.turn(_ENDING_S)
            turns.set_thread_count(most())
        while _is_called(listener) and server.accept_waiting():
            pass  # what has connected counts as in flight
        server.accepting = False
        end = time.monotonic() + drain_s
        server.turn(0)
        while server.in_flight() and time.monotonic() < end:
            server.turn(_ENDING_S)
        listener.close()
        status = close()
    except BaseException as error:
        raise RuntimeError("the HTTP server has ended, so the program ends") from error
    _flush()
    _leave(status)  # threads that a handler has left behind have no say in when this ends


def _identity(listener: socket.socket) -> tuple[int, int] | None:
    """What the descriptor is: a handler may close any, and its number be another's then."""
    with contextlib.suppress(OSError):
        found = os.fstat(listener.fileno())
        return found.st_dev, found.st_ino
    return None


def _begin_anew(
    server: _Server, listener: socket.socket | None, close: Callable[[], int]
) -> NoReturn:
    """Be replaced by the same program, which serves the same connections."""
    print("the program begins anew")
    with contextlib.suppress(OSError):  # a handler may have closed what is to be closed
        close()
    if listener is not None:
        begin_anew([listener, *(each.socket for each in server.active_channels.values())])
    if _LISTENER in _STARTED_WITH:
        _leave(1)  # what was inherited is lost: its owner starts another
    begin_anew([])


def begin_anew(sockets: Sequence[socket.socket], arguments: Sequence[str] = _ARGUMENTS) -> NoReturn:
    """Be replaced by the same program, started as this one was, with these arguments.

    It then listens on the first of `sockets`, and serves the connections that follow.
    """
    _flush()
    environment = dict(_STARTED_WITH)
    program = _STARTED_AS[: len(_STARTED_AS) - len(_ARGUMENTS)]
    try:
        for each in sockets:
            each.set_inheritable(True)
        if sockets:
            listener, *kept = (str(each.fileno()) for each in sockets)
            environment |= {_LISTENER: listener, _KEPT: ",".join(kept)}
        os.chdir(_STARTED_IN)
        os.umask(_UMASK)
        _replace(sys.executable, [*program, *arguments], environment)
    finally:
        _leave(1)


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


class _Server(TcpWSGIServer):  # type: ignore[misc]
    """waitress's server, with a bound on what its connections hold, and answers out of turn.

    Parameters
    ----------
    most
        Bytes that all connections together may hold.
    probes
        Paths that the loop answers by itself.
    turned, answered
        As `serve` has them.
    """

    def __init__(
        self,
        app: Callable[..., Iterable[bytes]],
        listener: socket.socket,
        most: int,
        probes: Collection[str],
        turns: _Turns,
        turned: Callable[[], None],
        answered: Callable[[str, str, float], None],
    ) -> None:
        self.channel_class = _Channel
        self.answered = answered
        self._turned = turned
        self.most = most
        self.held = 0
        self._connections = within_descriptors(_CONNECTIONS, _CONNECTIONS_SHARE)
        self._called = False
        #: There is no place for another connection until then.
        self._accepts_at = 0.0
        self._app = app
        self._counting = threading.Lock()
        self._relieved = threading.Event()
        self._probes = frozenset(probes)
        self._at_once: deque[_Channel] = deque()
        settings = Adjustments(
            sockets=[listener],
            recv_bytes=_READ,
            connection_limit=sys.maxsize,
            backlog=socket.SOMAXCONN,
            inbuf_overflow=most + 1,  # never into files
            outbuf_overflow=sys.maxsize,
            max_request_header_size=_HEAD,
            channel_request_lookahead=1,  # a connection that is gone is noticed
            cleanup_interval=_LOOK_S,
            ident=None,
        )
        family, kind, protocol = listener.family, listener.type, listener.proto
        super().__init__(
            self._apply,
            {},
            _sock=listener,
            dispatcher=turns,
            adj=settings,
            sockinfo=(family, kind, protocol, listener.getsockname()),
            bind_socket=False,
        )

    def _apply(self, environment: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """The answer that has been given; else ask the application, which may give it later."""
        request: _Parser = environment[_REQUEST_OF]
        if request.answer is not None:
            return request.answer(environment, start_response)
        body = self._app(environment, start_response)
        if request.later:
            raise _LaterError
        return body

    def turn(self, patience_s: float) -> None:
        """Do what there is to do on the connections; wait for that no longer than `patience_s`."""
        until_room_s = self._accepts_at - time.monotonic()
        if until_room_s > 0:
            patience_s = min(patience_s, until_room_s)
        wasyncore.loop(timeout=patience_s, use_poll=True, map=self._map, count=1)
        if self._called:
            self.accept_waiting()
        while self._at_once:
            self._at_once.popleft().service()
        if self.held > self.most:
            self._relieve(self.most)
            self._relieved.set()
        self._turned()

    def add_task(self, channel: _Channel) -> None:
        """Have a thread serve the request, or the loop where that needs no thread."""
        request = channel.requests[0]
        request.arrived = channel.arrived
        if not request.error:
            request.is_probe = request.path in self._probes and request.command in ("GET", "HEAD")
        if request.error or request.is_probe:
            self._at_once.append(channel)
            self.pull_trigger()  # a thread may have found it behind another one
        else:
            super().add_task(channel)

    def take(self, connection: socket.socket) -> None:
        """Serve a connection that was accepted before."""
        with contextlib.suppress(OSError):  # it is gone
            _Channel(self, connection, connection.getpeername(), self.adj, map=self._map)

    def handle_accept(self) -> None:
        """Note that connections wait. They are accepted when the loop has done its events.

        One of these may be of a connection that gives way, whose descriptor the new one gets.
        """
        self._called = True

    def accept_waiting(self) -> bool:
        """Accept connections, each above the bound in place of the longest silent; whether any was.

        Where none has been silent for a moment, those that wait stay in the kernel.
        """
        self._called = accepted = False
        active, silent = self.active_channels, list[_Channel]()
        room = self._connections - len(active)
        if room < _AT_ONCE:
            since = time.time() - _MOMENT_S
            silent = [each for each in active.values() if not each.is_owed and _since(each) < since]
            silent.sort(key=_since)
        for number in range(min(_AT_ONCE, room + len(silent))):
            before = len(active)
            super().handle_accept()
            if len(active) == before:
                return accepted
            accepted = True
            if number >= room:
                silent[number - room].handle_close()
        if room + len(silent) < _AT_ONCE:
            self._accepts_at = time.monotonic() + _MOMENT_S
        return accepted

    def readable(self) -> bool:
        """Whether to look for connections that wait."""
        return bool(super().readable()) and time.monotonic() >= self._accepts_at

    def maintenance(self, now: float) -> None:
        """Close connections that have been silent, and those whose client takes no answer."""
        super().maintenance(now)
        for channel in list(self.active_channels.values()):
            if channel.total_outbufs_len and channel.last_activity < now - _STALLED_S:
                channel.abort()

    def count(self, channel: _Channel) -> None:
        """Note what a connection holds now."""
        with self._counting:
            now = channel.size()
            self.held += now - channel.held
            channel.held = now

    def wait_for_relief(self) -> None:
        """Let the loop make room before another answer is made, if there is too little."""
        if self.held > self.most:
            self._relieved.clear()
            self.pull_trigger()
            self._relieved.wait(_RELIEF_S)

    def relieve_now(self) -> None:
        """Make room before more is read: all that has come for this turn may be too much."""
        if self.held > self.most:
            self._relieve(self.most - self.most // _ROOM_SHARE)

    def _relieve(self, most: int) -> None:
        """Hold no more than `most`; but one answer, however large it is, goes out."""
        fair = max(self.most // self._connections, _REQUEST)  # each may have it, whatever others do
        yielding = [
            channel
            for channel in self.active_channels.values()
            if channel.coming + channel.total_outbufs_len > fair
        ]
        yielding.sort(key=_since)
        sending = [channel for channel in yielding if channel.total_outbufs_len > fair]
        for channel in yielding:
            if self.held <= most:
                return
            if channel not in sending[-1:]:
                channel.give_way()

    def let_go(self) -> None:
        """In a process that a handler has forked: hold no port and no connection, end when told."""
        for channel in list(self._map.values()):
            channel.socket.close()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP)

    def forget(self, channel: _Channel) -> bool:
        """Take a connection out of the queue; whether it was there, and nothing had begun."""
        dispatcher = self.task_dispatcher
        with dispatcher.lock, contextlib.suppress(ValueError):
            dispatcher.queue.remove(channel)
            return True
        return False

    def in_flight(self, late: bool = False) -> bool:
        """Whether a request is here: in part (unless it is `late`), in work, or to be answered."""
        dispatcher = self.task_dispatcher
        return bool(dispatcher.queue or dispatcher.active_count) or any(
            channel.is_owed or (channel.request is not None and not late)
            for channel in self.active_channels.values()
        )


def _since(channel: _Channel) -> float:
    return float(channel.last_activity)


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
            end(error)


def end(error: BaseException | None) -> NoReturn:
    """End as a program does that raised `error`, but wait for no thread of a handler."""
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


class CutError(ClientDisconnected):  # type: ignore[misc]
    """The rest of an answer cannot be had: raised by its body, it has the connection closed."""


class _LaterError(BaseException):
    """The request is not answered yet."""


class _Turns:
    """Has threads serve requests, of which some wait for their turn where there are many.

    It is waitress's task dispatcher. A turn ends with the answer, whichever thread gives it.
    """

    def __init__(self, start: Callable[[Callable[[], None]], object]) -> None:
        self.lock = threading.Lock()
        self.queue: deque[_Channel] = deque()
        self.active_count = 0
        self._start = start
        self._most = 0

    def set_thread_count(self, count: int) -> None:
        """Serve so many requests at once."""
        if count != self._most:
            self._most = count
            self._begin()

    def count(self) -> tuple[int, int]:
        """How many requests are in hand, and how many wait."""
        with self.lock:
            return self.active_count, len(self.queue)

    def add_task(self, channel: _Channel) -> None:
        """Have the first request of `channel` served when its turn comes."""
        with self.lock:
            self.queue.append(channel)
        self._begin()

    def end(self) -> None:
        """Note that a request has been answered."""
        with self.lock:
            self.active_count -= 1
        self._begin()

    def _begin(self) -> None:
        while True:
            with self.lock:
                if not self.queue or self.active_count >= self._most:
                    return
                self.active_count += 1
                channel = self.queue.popleft()
            try:
                self._start(channel.take_turn)
            except RuntimeError:  # no thread can be had
                channel.take_turn()


class _Task(WSGITask):  # type: ignore[misc]
    def get_environment(self) -> dict[str, Any]:
        """WSGI's, and when the request arrived, with what it can be answered later, and turns."""
        environment: dict[str, Any] = super().get_environment()
        environment[ARRIVED] = self.request.arrived
        environment[_REQUEST_OF] = self.request
        environment[LATER] = self.channel.answer_later
        environment[TURNS] = self.channel.server.task_dispatcher.count
        return environment

    def build_response_header(self) -> bytes:
        """As ever, but that a server that is about to end keeps no connection."""
        self.request.status = self.status[:3]
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
        self._bytes = unfilled(length)
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
        """All of it, not copied; it is the caller's from now on, and no longer in here."""
        whole, self._bytes = self._bytes, bytearray()
        return whole

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
        return bytes(memoryview(self.whole())[self._read :])

    def close(self) -> None:
        """Be done with it."""
        self._bytes = bytearray()
        super().close()


class _Nowhere(LargeBody):
    """What is left of a body that is refused."""

    def __init__(self) -> None:
        super().__init__(0)

    def append(self, piece: bytes) -> None:
        """Do without it."""


class _FullError(Error):  # type: ignore[misc]
    code = 503
    reason = "Service Unavailable"


class _Parser(HTTPRequestParser):  # type: ignore[misc]
    """A request as it comes.

    Attributes
    ----------
    size
        Bytes that it holds.
    refusal
        The answer that it gets when it is whole; what comes of it until then is dropped, as only
        a client that has sent all looks at its answer.
    later, answer
        Whether it is answered later, and the answer when it is there.
    arrived
        When it was whole.
    is_probe
        Whether it only asks how the server is.
    status
        The HTTP status of its answer; empty where it has got none.
    """

    command = ""
    completed: bool
    error: Error | None

    def __init__(self, adj: Adjustments) -> None:
        super().__init__(adj)
        self.size = _REQUEST
        self.refusal: Error | None = None
        self.later = False
        self.answer: Callable[..., Iterable[bytes]] | None = None
        self.arrived = 0.0
        self.is_probe = False
        self.status = ""

    @property
    def in_body(self) -> bool:
        """Whether more of a body is to come that has not been refused."""
        return self.body_rcv is not None and self.refusal is None

    def refuse(self, refusal: Error) -> None:
        """Hold nothing of it."""
        self.refusal = refusal
        self.size = _REQUEST
        self.body_rcv.buf = _Nowhere()

    def refuse_all(self, error: Error) -> _Parser:
        """Have this error answered, and nothing more that comes over the connection."""
        self.error = error
        return self

    def received(self, data: bytes) -> int:
        """As ever; counts, and refuses what is too much."""
        if self.error and not self.completed:
            self.completed = True
            return len(data)
        if self.chunked:
            data = data[: max(_CHUNKED, self.body_rcv.chunk_remainder)]
        taken = int(super().received(data))
        if self.refusal is None:
            self.size += taken
        if self.chunked:
            self._check_chunks()
        if self.completed and self.refusal is not None:
            self.error = self.error or self.refusal
        return taken

    def _check_chunks(self) -> None:
        body = self.body_rcv  # what it has between chunks is no part of the body yet
        if len(body.control_line) + len(body.trailer) > _HEAD:
            self.error = BadRequest(f"more than {_HEAD} bytes between two chunks")
            self.completed = True
        elif self.refusal is None and self.size >= self.adj.inbuf_overflow:
            self._refuse_size()

    def parse_header(self, header_plus: bytes) -> None:
        """As ever; decides where the body goes."""
        if header_plus.count(b"\r\n") > _FIELDS:
            raise ParsingError(f"more than {_FIELDS} headers")
        super().parse_header(header_plus)
        length = self.content_length
        if self.size + len(header_plus) + length >= self.adj.inbuf_overflow:
            self._refuse_size()
        elif length >= _LARGE:
            self.body_rcv = FixedStreamReceiver(length, LargeBody(length))

    def _refuse_size(self) -> None:
        most = self.adj.inbuf_overflow - 1
        self.refuse(RequestEntityTooLarge(f"a request may have {most} bytes here"))


class _Uncopied(ReadOnlyFileBasedBuffer):  # type: ignore[misc]
    """A large piece of an answer.

    waitress's other buffers copy it, and then, at each turn, as much as a socket takes at most,
    which for 10 MB comes to several times what is sent.
    """

    def __init__(self, piece: bytes | memoryview) -> None:
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
    """A connection."""

    task_class = _Task
    request: _Parser | None
    requests: list[_Parser]
    arrived = 0.0
    #: Bytes, as the server has counted them.
    held = 0

    def parser_class(self, adj: Adjustments) -> _Parser:
        """What reads the next request."""
        parser = _Parser(adj)
        if len(self.requests) < _PIPELINED:
            return parser
        return parser.refuse_all(BadRequest(f"more than {_PIPELINED} requests before an answer"))

    @property
    def is_owed(self) -> bool:
        """Whether the client has not had its answer yet."""
        return bool(self.requests or self.total_outbufs_len)

    @property
    def coming(self) -> int:
        """Bytes that it holds of a request that is not whole."""
        last = self.request
        return last.size if last else 0

    def size(self) -> int:
        """Bytes that it holds."""
        requests = sum(request.size for request in tuple(self.requests))
        return int(requests + self.coming + self.total_outbufs_len)

    def give_way(self) -> None:
        """Hold less: refuse the request that comes, or let the connection go."""
        coming = self.request
        if coming is None or not coming.in_body:
            self.abort()
        else:
            most = self.server.most
            coming.refuse(_FullError(f"all requests together may have {most} bytes: try again"))
            self.server.count(self)

    def abort(self) -> None:
        """Let the connection go at once, with what the kernel still has to send over it."""
        with contextlib.suppress(OSError):
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.handle_close()

    def received(self, data: bytes) -> bool:
        """Part of a request has come, perhaps its last one."""
        self.arrived = time.monotonic()
        took = bool(super().received(data))
        self.server.count(self)
        self.server.relieve_now()
        return took

    def take_turn(self) -> None:
        """Serve a request in this thread, and end the turn if it is answered then."""
        try:
            self.service()
        except _LaterError:
            return
        except BaseException:  # whatever a handler has done to the process: the next one's turn
            traceback.print_exc()
        self.server.task_dispatcher.end()

    def service(self) -> None:
        """Serve a request in this thread. Raises `_LaterError` where it will be answered later."""
        request = self.requests[0]
        with OneProcess() as self._process:
            super().service()
        self.server.count(self)
        if not request.is_probe:
            took_s = time.monotonic() - request.arrived
            self.server.answered(request.command, self._status_of(request), took_s)

    def _status_of(self, request: _Parser) -> str:
        if request.error:
            return str(request.error.code)
        return request.status or (_NO_ANSWER if self.connected else _CLIENT_GONE)

    def answer_later(self) -> Callable[[Callable[..., Iterable[bytes]]], None]:
        """Keep the request until what is returned here is called, with the answer."""
        request = self.requests[0]
        request.later = True

        def answer(application: Callable[..., Iterable[bytes]]) -> None:
            request.answer = application
            self.take_turn()

        return answer

    def write_soon(self, data: bytes | memoryview) -> int:
        """Send `data` once the connection takes it."""
        self._process.check()  # a body may fork while it is made
        if not self.total_outbufs_len:
            self.last_activity = time.time()  # it was the handler that was silent until now
        large = isinstance(data, bytes | memoryview) and len(data) >= _LARGE
        written = int(super().write_soon(_Uncopied(data) if large else data))
        if self.total_outbufs_len:
            self.server.count(self)
            self.server.wait_for_relief()
        return written

    def handle_write(self) -> None:
        """Send more of an answer."""
        super().handle_write()
        self.server.count(self)

    def handle_close(self) -> None:
        """The connection is gone, and with it all that had not begun."""
        super().handle_close()
        self.request = None
        if self.server.forget(self):
            self.requests = []
        else:
            del self.requests[1:]
        self.server.count(self)


def _is_called(listener: socket.socket) -> bool:
    return listener.fileno() >= 0 and bool(select.select([listener], [], [], 0)[0])
