"""How two wraps that connect prove to each other that they belong together.

Both prove that they have the secret of the deployment and are of one build. A proof covers nonces
of both sides, so that it is of no use on another connection.
"""

from __future__ import annotations

import hmac
import os
import socket
import time
from collections.abc import Generator

_NONCE, _PROOF = 16, 32
#: How long a handshake may take as a whole, in seconds.
CONNECT_S = 1.0
#: A connection whose other side's host is gone or cannot be reached ends after 6 s: 3 s without a
#: packet, and three probes without an answer. What has been sent and not received delays that.
_KEEPALIVE = {
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE): 1,
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE): 3,
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL): 1,
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT): 3,
}
#: Yields what is to be sent, and how many bytes have to come then; gets these.
_Steps = Generator[tuple[bytes, int], bytes, None]


class Handshake:
    """One side of a handshake: bytes go in, bytes come out.

    Attributes:
        first: what is to be sent before anything has come.
        wanted: how many bytes have to come next; 0 when the other side has proved that it has the
            key.
    """

    def __init__(self, steps: _Steps) -> None:
        self._steps = steps
        self._heard = b""
        self.first, self.wanted = next(steps)

    @classmethod
    def called(cls, key: bytes) -> Handshake:
        """The side that was called."""
        return cls(_called(key, os.urandom(_NONCE)))

    @classmethod
    def calling(cls, key: bytes) -> Handshake:
        """The side that has connected."""
        return cls(_calling(key, os.urandom(_NONCE)))

    def hear(self, piece: bytes) -> bytes:
        """What is to be sent for the next bytes, of which no more than `wanted` may come at once.

        Raises ConnectionError: there are none: the other side has ended the connection.
        Raises ValueError: the other side does not have the key.
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
    """Go through the handshake, as the side that has connected.

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
    """Have small messages go out at once, and the end of the other side's host noticed."""
    channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for option, value in _KEEPALIVE.items():
        channel.setsockopt(*option, value)


def _left_s(until: float) -> float:
    left_s = until - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("it did not say in time what it is")
    return left_s


def _proof(key: bytes, side: bytes, nonces: bytes) -> bytes:
    """That a side has the key, for this connection alone."""
    return hmac.digest(key, side + nonces, "sha256")


def _check(proof: bytes, expected: bytes) -> None:
    if not hmac.compare_digest(proof, expected):
        raise ValueError("it does not know this deployment's secret, or is of another build")
