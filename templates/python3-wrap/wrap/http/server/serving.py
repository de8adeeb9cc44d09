"""Serves a WSGI application with waitress until SIGTERM, then finishes the requests in flight.

It listens on the socket that ``LISTEN_FD`` names, else on ``host`` and ``port``.

Connections hold memory for the bytes that have arrived, and for those not yet taken. All
connections together may hold a share of the replica's memory. When they would hold more, the
connection that has been silent for longest gives way.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NoReturn

from wrap.core import memory_shares

from .accepting import Hooks, Server
from .dispatcher import Dispatcher
from .program import STOP, begin_anew, flush, inherits, leave, show, told

#: How often to check whether the listener still exists, in seconds.
_LISTENER_LOOK_S = 1.0
#: How often a program that is to end or restart checks whether it can, in seconds.
_ENDING_S = 0.05


def serve(
    app: Callable[..., Iterable[bytes]],
    sockets: Sequence[socket.socket],
    most: Callable[[], int],
    memory_bytes: int,
    start: Callable[[Callable[[], None]], object],
    hooks: Hooks,
) -> NoReturn:
    """Serve `app`; exit after SIGTERM or SIGINT, with the status that `close` returns.

    Args:
        sockets: the sockets that `listen` returned.
        most: returns how many requests may be served at once; called after each turn of the loop.
        memory_bytes: the most memory of the replica.
        start: calls a function in a thread.
    """
    listener, *kept = sockets
    dispatcher = Dispatcher(start)
    bound = memory_shares.of_connections(memory_bytes)
    server = Server(app, listener, bound, dispatcher, hooks)
    dispatcher.set_thread_count(most())
    # Block the signals to end while a handler forks, until the new process handles them.
    os.register_at_fork(
        before=partial(signal.pthread_sigmask, signal.SIG_BLOCK, STOP),
        after_in_parent=partial(signal.pthread_sigmask, signal.SIG_UNBLOCK, STOP),
        after_in_child=server.let_go,
    )
    for connection in kept:
        server.take(connection)
    stopping: list[int] = []

    def stop(number: int, _frame: object) -> None:
        stopping.append(number)
        server.pull_trigger()  # the loop may be asleep

    for number in STOP:
        signal.signal(number, stop)
    show()
    stopping.extend(told)

    def turn(patience_s: float) -> None:
        server.turn(patience_s)
        dispatcher.set_thread_count(most())

    try:
        _serve_until(stopping, server, listener, turn, hooks)
        status = _finish(server, listener, turn, hooks)
    except BaseException as error:
        raise RuntimeError("the HTTP server has ended, so the program ends") from error
    flush()
    leave(status)  # without waiting for threads that handlers have left


def _serve_until(
    stopping: Sequence[int],
    server: Server,
    listener: socket.socket,
    turn: Callable[[float], None],
    hooks: Hooks,
) -> None:
    """Serve until a signal to end; restart if the program is worn or has lost its port.

    A restart waits until nothing is in flight; for an incomplete request, `drain_s` at most.
    """
    own, worn_since = _identity(listener), math.inf
    looked, lost = time.monotonic(), False
    while not stopping:
        turn(1 if worn_since == math.inf else _ENDING_S)
        now = time.monotonic()
        if now > looked + _LISTENER_LOOK_S:
            looked, lost = now, _identity(listener) != own
        if not (lost or hooks.worn()):  # lost threads may have ended meanwhile
            worn_since = math.inf
            continue
        worn_since = min(worn_since, now)
        if not server.in_flight(late=now > worn_since + hooks.drain_s):
            _begin_anew(server, None if lost else listener, hooks.close)


def _finish(
    server: Server, listener: socket.socket, turn: Callable[[float], None], hooks: Hooks
) -> int:
    """Answer the requests in flight. Return the status that `close` returns."""
    hooks.ending()
    told = time.monotonic()
    while not hooks.may_exit(time.monotonic() - told):
        turn(_ENDING_S)
    while _is_called(listener) and server.accept_waiting():
        pass  # accepted connections count as in flight
    server.accepting = False
    end = time.monotonic() + hooks.drain_s
    server.turn(0)
    while server.in_flight() and time.monotonic() < end:
        server.turn(_ENDING_S)
    listener.close()
    return hooks.close()


def _identity(listener: socket.socket) -> tuple[int, int] | None:
    """Return the identity of the listener's file: a handler may close it and reuse its number."""
    with contextlib.suppress(OSError):
        found = os.fstat(listener.fileno())
        return found.st_dev, found.st_ino
    return None


def _begin_anew(
    server: Server, listener: socket.socket | None, close: Callable[[], int]
) -> NoReturn:
    """Replace the process by the same program, which serves the same connections."""
    print("the program begins anew")
    with contextlib.suppress(OSError):  # a handler may have closed it already
        close()
    if listener is not None:
        begin_anew([listener, *(each.socket for each in server.active_channels.values())])
    if inherits():
        leave(1)  # the inherited socket is lost; its owner starts another program
    begin_anew([])


def _is_called(listener: socket.socket) -> bool:
    return listener.fileno() >= 0 and bool(select.select([listener], [], [], 0)[0])
