"""How two wraps that connect learn that they belong together.

Both prove that they have the secret of the deployment and are of one build, by nonces of both, so
that no proof is of use on another connection.
"""

from __future__ import annotations

import hmac
import os
import socket

_NONCE, _PROOF = 16, 32
#: How long to wait for the other side of a new connection, in seconds.
CONNECT_S = 1.0


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
