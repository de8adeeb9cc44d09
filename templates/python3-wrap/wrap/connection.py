"""What two wraps say to each other over a connection of their own: who they are, then messages.

Both prove that they have the secret of the deployment and are of one build, by nonces of both, so
that no proof is of use on another connection. A message is a number, which says what it is about,
and frames.
"""

from __future__ import annotations

import hmac
import json
import os
import socket
from collections.abc import Sequence

from wrap import frames
from wrap.frames import Frame, Unsent
from wrap.shared import Shared

_NONCE, _PROOF = 16, 32
#: How long to wait for the other side of a new connection, in seconds, and for the next bytes of a
#: message that has begun.
CONNECT_S, STALLED_S = 1.0, 30.0


def greet(channel: socket.socket, key: bytes) -> None:
    """Learn that what has connected has `key`, and prove it too. Raises OSError and ValueError."""
    _prepare(channel)
    ours = os.urandom(_NONCE)
    channel.sendall(ours)
    theirs = _exactly(channel, _NONCE)
    _check(_exactly(channel, _PROOF), _proof(key, b"call", ours + theirs))
    channel.sendall(_proof(key, b"take", theirs + ours))


def introduce(channel: socket.socket, key: bytes) -> None:
    """The same, as the side that has connected."""
    _prepare(channel)
    theirs, ours = _exactly(channel, _NONCE), os.urandom(_NONCE)
    channel.sendall(ours + _proof(key, b"call", theirs + ours))
    _check(_exactly(channel, _PROOF), _proof(key, b"take", ours + theirs))


def _prepare(channel: socket.socket) -> None:
    channel.settimeout(CONNECT_S)
    channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _proof(key: bytes, side: bytes, nonces: bytes) -> bytes:
    """That a side has the key, for this connection alone."""
    return hmac.digest(key, side + nonces, "sha256")


def _check(proof: bytes, expected: bytes) -> None:
    if not hmac.compare_digest(proof, expected):
        raise ValueError("it does not know this deployment's secret, or is of another build")


def _exactly(channel: socket.socket, count: int) -> bytes:
    said = b""
    while len(said) < count:
        piece = channel.recv(count - len(said))
        if not piece:
            raise ConnectionError("it ended before it had said what it is")
        said += piece
    return said


def send(channel: socket.socket, number: float, content: Sequence[Unsent]) -> None:
    """Send a message: a number, which says what it is about, and frames."""
    frames.write(channel, [json.dumps([len(content), number]), *content])


def received(channel: socket.socket, longest: int) -> tuple[float, list[Frame]] | None:
    """The number and the frames of the next message; None where the other side has closed.

    Raises ValueError or TypeError for what is none, and OSError.
    """
    inflow = frames.Inflow(longest)
    found: list[Frame] = []
    count, number = 0, 0.0
    while len(found) <= count:
        more = inflow.receive(channel)
        if more is None:
            if not found and not inflow.begun:
                return None
            raise ValueError("the message breaks off")
        for frame in more:
            if isinstance(frame, Shared):
                raise TypeError("shared memory of another machine")
            found.append(frame)
        if count == 0 and found:
            count, number = json.loads(str(found[0], "utf-8"))
    _, *content = found
    if len(content) != count:
        raise ValueError("more than a message")
    return number, content
