"""Redis as a store.

It implements the protocol (RESP 2) itself, as it needs few commands. The library copies a large
value three times when sending, which takes as long as the transfer itself.
"""

from __future__ import annotations

import contextlib
import io
import socket
import ssl
import time
from collections.abc import Sequence
from typing import Any, TypeAlias
from urllib.parse import SplitResult

from wrap.core.limits import left_s
from wrap.net.object_store import CONNECT_S, KEPT_S, failed, late, shown

_PORT = 6379
#: Most idle connections that are kept.
_KEPT = 64
#: Names to delete at once.
_AT_ONCE = 1000
#: The longest line of an answer, in bytes; longer arguments are sent without a copy.
_LONG = 1 << 16
#: A command and its arguments.
Command: TypeAlias = Sequence[bytes | memoryview]
#: A value, a status line, or a list of answers; None if there is no value.
Answer: TypeAlias = "bytes | list[Answer] | None"


class RefusedError(Exception):
    """An error that the server reports."""


class Redis:
    """A store whose content expires: see `store_of`. ValueError if the database is no number."""

    def __init__(self, url: SplitResult, password: str) -> None:
        self.place = shown(url)
        self._address = (url.hostname or "", url.port or _PORT)
        self._tls = ssl.create_default_context() if url.scheme == "rediss" else None
        self._greeting: list[list[bytes]] = []
        if password:
            user = [url.username.encode()] if url.username else []
            self._greeting.append([b"AUTH", *user, password.encode()])
        if database := int(url.path.strip("/") or 0):
            self._greeting.append([b"SELECT", b"%d" % database])
        self._idle: list[_Connection] = []

    def put(self, name: str, content: bytes | memoryview, deadline: float) -> None:
        kept_ms = 1000 * (max(0.0, deadline - time.monotonic()) + KEPT_S)
        self.run([(b"SET", name.encode(), content, b"PX", b"%d" % kept_ms)], deadline)

    def get(self, name: str, deadline: float) -> bytes:
        (found,) = self.run([(b"GET", name.encode())], deadline)
        if not isinstance(found, bytes):
            raise failed(self.place, f"{name} is gone: it has expired, or was evicted")
        return found

    def delete(self, names: Sequence[str], deadline: float) -> None:
        for start in range(0, len(names), _AT_ONCE):
            batch = (name.encode() for name in names[start : start + _AT_ONCE])
            self.run([(b"UNLINK", *batch)], deadline)

    def run(self, commands: Sequence[Command], deadline: float) -> list[Answer]:
        """Send idempotent commands at once, and return the server's answers.

        If the connection breaks they are sent again over a new one. The server closes connections
        that are idle for long, and all of them when it restarts.
        """
        try:
            with contextlib.suppress(ConnectionError, EOFError):
                return self._over(self._kept() or self._connected(deadline), commands, deadline)
            while connection := self._kept():
                connection.close()
            return self._over(self._connected(deadline), commands, deadline)
        except TimeoutError as error:
            raise late(self.place) from error
        except (OSError, EOFError, ValueError, RefusedError) as error:
            raise failed(self.place, error) from error

    def _over(
        self, connection: _Connection, commands: Sequence[Command], deadline: float
    ) -> list[Answer]:
        with contextlib.ExitStack() as closing:
            closing.callback(connection.close)
            connection.wait_until(deadline)
            answers = connection.run(commands)
            closing.pop_all()
        if len(self._idle) < _KEPT:
            self._idle.append(connection)
        else:
            connection.close()
        return answers

    def _connected(self, deadline: float) -> _Connection:
        within_s = min(CONNECT_S, left_s(time.monotonic(), deadline))
        channel = socket.create_connection(self._address, within_s)
        with contextlib.ExitStack() as closing:
            closing.callback(channel.close)
            channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                channel = self._tls.wrap_socket(channel, server_hostname=self._address[0])
                closing.callback(channel.close)
            connection = _Connection(channel, deadline)
            connection.run(self._greeting)
            closing.pop_all()
        return connection

    def _kept(self) -> _Connection | None:
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        return None


class _Answers(io.RawIOBase):
    """The bytes from a socket until the deadline, after which operations raise TimeoutError."""

    def __init__(self, channel: socket.socket, deadline: float) -> None:
        self._channel = channel
        self.deadline = deadline

    def limit(self) -> None:
        """Make the socket's next operation time out at the deadline."""
        left_s = self.deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._channel.settimeout(left_s)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.limit()
        return self._channel.recv_into(buffer)


class _Connection:
    """A connection, used by one thread at a time."""

    def __init__(self, channel: socket.socket, deadline: float) -> None:
        self._channel = channel
        self._answers = _Answers(channel, deadline)
        self._incoming = io.BufferedReader(self._answers)

    def wait_until(self, deadline: float) -> None:
        """Raise TimeoutError at `deadline` from now on, even if bytes arrive one by one."""
        self._answers.deadline = deadline

    def run(self, commands: Sequence[Command]) -> list[Answer]:
        """Send commands, and return the answer to each. Raises as `_answer` does."""
        for command in commands:
            self._send(*command)
        return [self._answer() for _ in commands]

    def _send(self, *arguments: bytes | memoryview) -> None:
        """Send a command; a large argument is not copied."""
        waiting = bytearray(b"*%d\r\n" % len(arguments))
        for each in arguments:
            waiting += b"$%d\r\n" % len(each)
            if len(each) < _LONG:
                waiting += each
            else:
                self._send_all(waiting)
                self._send_all(each)
                waiting = bytearray()
            waiting += b"\r\n"
        self._send_all(waiting)

    def _send_all(self, content: bytes | bytearray | memoryview) -> None:
        self._answers.limit()
        self._channel.sendall(content)

    def _answer(self) -> Answer:
        """Read one answer. Raises RefusedError, or EOFError if the connection ends."""
        line = self._incoming.readline(_LONG)
        if not line.endswith(b"\r\n"):
            raise EOFError("the connection ended")
        kind, said = line[:1], line[1:-2]
        if kind == b"-":
            raise RefusedError(said.decode(errors="replace"))
        if kind in b"+:":
            return said
        if kind == b"*":
            return [self._answer() for _ in range(int(said))]
        if kind != b"$":
            raise ValueError("what answers is no Redis")
        length = int(said)
        if length < 0:
            return None
        value = self._incoming.read(length)
        if len(value) < length or self._incoming.read(2) != b"\r\n":
            raise EOFError("the connection ended within a value")
        return value

    def close(self) -> None:
        self._incoming.close()
        self._channel.close()
