"""The handshake of two wraps that connect: each proves that they belong together.

Both prove that they have the deployment's secret and are of one build. A proof covers the nonces of
both sides, so it is useless on another connection.
"""

from __future__ import annotations

import hmac
import os
import socket
import time
from collections.abc import Generator

_NONCE, _PROOF = 16, 32
#: Timeout of a whole handshake, in seconds.
CONNECT_S = 1.0
#: If the peer's host is gone or unreachable, the connection ends after 6 s: 3 s without a packet,
#: then three probes without an answer. Bytes sent and not received delay that.
_KEEPALIVE = {
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE): 1,
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE): 3,
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL): 1,
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT): 3,
}
#: Yields the bytes to send and how many bytes to receive next; is sent the received bytes.
_Steps = Generator[tuple[bytes, int], bytes, None]


class Handshake:
    """One side of a handshake, without I/O: bytes go in, bytes come out.

    Attributes:
        first: the bytes to send before any have been received.
        wanted: how many bytes to receive next; 0 when the other side has proved that it has the
            key.
    """

    def __init__(self, steps: _Steps) -> None:
        self._steps = steps
        self._heard = b""
        self.first, self.wanted = next(steps)

    @classmethod
    def called(cls, key: bytes) -> Handshake:
        """Return the side that accepted the connection."""
        return cls(_called(key, os.urandom(_NONCE)))

    @classmethod
    def calling(cls, key: bytes) -> Handshake:
        """Return the side that opened the connection."""
        return cls(_calling(key, os.urandom(_NONCE)))

    def hear(self, piece: bytes) -> bytes:
        """Take received bytes, at most `wanted`, and return the bytes to send.

        Raises ConnectionError if `piece` is empty: the other side has closed the connection. Raises
        ValueError if the other side does not have the key.
        """
        if not piece:
            raise ConnectionError("it ended before it had said what it is")
        self._heard += piece
        self.wanted -= len(piece)
        if self.wanted:
            return b""
        heard, self._heard = self._heard, b""
        reply, self.wanted = self._steps.send(heard)
        return reply


def _called(key: bytes, ours: bytes) -> _Steps:
    heard = yield ours, _NONCE + _PROOF
    theirs, proof = heard[:_NONCE], heard[_NONCE:]
    _check(proof, _proof(key, b"call", ours + theirs))
    yield _proof(key, b"take", theirs + ours), 0


def _calling(key: bytes, ours: bytes) -> _Steps:
    theirs = yield b"", _NONCE
    proof = yield ours + _proof(key, b"call", theirs + ours), _PROOF
    _check(proof, _proof(key, b"take", ours + theirs))
    yield b"", 0


def introduce(channel: socket.socket, key: bytes, until: float) -> None:
    """Perform the handshake, as the side that opened the connection.

    Raises OSError and ValueError; TimeoutError from `until` on, a time of the monotonic clock.
    """
    prepare(channel)
    handshake = Handshake.calling(key)
    while handshake.wanted:
        channel.settimeout(_left_s(until))
        if reply := handshake.hear(channel.recv(handshake.wanted)):
            channel.settimeout(_left_s(until))
            channel.sendall(reply)


def prepare(channel: socket.socket) -> None:
    """Send small messages at once, and detect that the other side's host is gone."""
    channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for option, value in _KEEPALIVE.items():
        channel.setsockopt(*option, value)


def _left_s(until: float) -> float:
    left_s = until - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("it did not say in time what it is")
    return left_s


def _proof(key: bytes, side: bytes, nonces: bytes) -> bytes:
    """Return the proof that a side has the key, valid for this connection alone."""
    return hmac.digest(key, side + nonces, "sha256")


def _check(proof: bytes, expected: bytes) -> None:
    if not hmac.compare_digest(proof, expected):
        raise ValueError("it does not know this deployment's secret, or is of another build")
