"""How objects get to other wraps directly: over TCP connections between them, which are kept.

A wrap learns another's address through the gateway. Where there is no connection, or it breaks,
calls go through the gateway as ever. A connection carries one call at a time, so no call waits for
the bytes of another one; large objects go from the memory that they are in.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial

from wrap.connection import CONNECT_S, STALLED_S, introduce, received, send
from wrap.errors import TaskError
from wrap.messages import Request, Result
from wrap.remote import Gateway, failure, results_of
from wrap.transport import GRACE_S

#: How long what the gateway said of addresses holds, in seconds: then there may be other replicas.
_KNOWN_S = 5.0
_OK = 200
#: How often another replica is looked for where one cannot be reached.
_ATTEMPTS = 2
#: Idle connections that are kept to a replica.
_KEPT = 64


class Direct:
    """Calls wraps over connections of their own; through the gateway where there can be none.

    Parameters
    ----------
    key
        What both sides prove that they have.
    longest
        Bytes that an object may have.
    """

    def __init__(self, gateway: Gateway, key: bytes, longest: int) -> None:
        self._gateway = gateway
        self._key = key
        self._longest = longest
        self._replicas: dict[str, _Replicas] = {}
        self._lock = threading.Lock()

    def call(
        self, wrap: str, request: Request, deadline: float, sent: Callable[[], None]
    ) -> list[Result]:
        """As `wrap.transport.Transport.call` says.

        A connection that breaks before the answer leaves it open whether the tasks have run: they
        are called again through the gateway.
        """
        with self._lock:
            replicas = self._replicas.get(wrap)
            if replicas is None:
                replicas = _Replicas(partial(self._gateway.address, wrap))
                self._replicas[wrap] = replicas
        for _ in range(_ATTEMPTS):
            address = replicas.of(request.ident.number)
            if address is None:
                break
            try:
                channel = address.idle() or self._connected(address)
            except (OSError, ValueError) as error:
                replicas.forget(address)
                print(f"wrap {wrap} at {address} cannot be reached: {error}")
                continue
            try:
                return self._called(wrap, channel, address, request, deadline, sent)
            except (OSError, ValueError, TypeError, LookupError) as error:
                replicas.forget(address)
                if time.monotonic() >= deadline:
                    message = f"wrap {wrap} did not answer in time"
                    raise TaskError("timeout", message, status=504) from error
                print(f"wrap {wrap} at {address} broke off: {error}")
                break
        return self._gateway.call(wrap, request, deadline, sent)

    def _called(
        self,
        wrap: str,
        channel: socket.socket,
        address: Address,
        request: Request,
        deadline: float,
        sent: Callable[[], None],
    ) -> list[Result]:
        asked = time.monotonic()
        with contextlib.ExitStack() as closing:
            closing.callback(channel.close)
            remaining = max(0.001, deadline - time.monotonic())
            channel.settimeout(min(STALLED_S, remaining))
            send(channel, remaining, request.frames())
            sent()
            channel.settimeout(remaining + GRACE_S)
            message = received(channel, self._longest)
            if message is None:
                raise ConnectionError("the connection ended")
            closing.pop_all()
        address.keep(channel)
        status, content = message
        if status != _OK:
            raise failure(wrap, int(status), content[0])
        return results_of(wrap, content, request, asked)

    def _connected(self, address: Address) -> socket.socket:
        channel = socket.create_connection((address.host, address.port), CONNECT_S)
        try:
            introduce(channel, self._key)
        except BaseException:
            channel.close()
            raise
        return channel

    def forward(
        self, wrap: str, body: bytes | bytearray, headers: Mapping[str, str], deadline: float
    ) -> tuple[int, bytes, str]:
        """As `wrap.transport.Transport.forward` says: a whole request goes through the gateway."""
        return self._gateway.forward(wrap, body, headers, deadline)


class Address:
    """Where a replica listens, and the connections to it that have nothing to do."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self._idle: list[socket.socket] = []

    def __str__(self) -> str:
        return f"{self.host} {self.port}"

    def idle(self) -> socket.socket | None:
        """A connection that the other side has not closed; it is the caller's now."""
        while self._idle:
            with contextlib.suppress(IndexError):  # another thread has taken it
                channel = self._idle.pop()
                if _is_quiet(channel):
                    return channel
                channel.close()
        return None

    def keep(self, channel: socket.socket) -> None:
        """Use a connection again."""
        if len(self._idle) < _KEPT:
            self._idle.append(channel)
        else:
            channel.close()


class _Replicas:
    """The replicas of a wrap that are known, which share executions by their numbers.

    Parameters
    ----------
    ask
        Says where one of them is; None where they cannot be called directly.
    """

    def __init__(self, ask: Callable[[], str | None]) -> None:
        self._ask = ask
        self._known: dict[str, Address] = {}
        self._asked = -_KNOWN_S
        self._asking = threading.Lock()

    def of(self, execution: int) -> Address | None:
        """The replica for an execution, the same one for all of its calls while it is there."""
        if self._is_old() and self._asking.acquire(blocking=not self._known):
            try:
                if self._is_old():
                    self._learn(self._ask())
            except (ValueError, TaskError) as error:
                print(f"no address of a wrap: {error}")
            finally:
                self._asked = time.monotonic()
                self._asking.release()
        known = list(self._known.values())
        return known[execution % len(known)] if known else None

    def _is_old(self) -> bool:
        return time.monotonic() >= self._asked + _KNOWN_S

    def _learn(self, told: str | None) -> None:
        if told is not None and told not in self._known:
            host, _, port = told.partition(" ")
            known = {**self._known, told: Address(host, int(port))}
            self._known = dict(sorted(known.items()))

    def forget(self, address: Address) -> None:
        """It has not answered."""
        self._known = {name: each for name, each in self._known.items() if each is not address}
        self._asked = -_KNOWN_S


def _is_quiet(channel: socket.socket) -> bool:
    """Whether the other side has neither closed it nor said something unasked."""
    channel.setblocking(False)
    try:
        channel.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
