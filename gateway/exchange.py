"""Sends one request to a ready replica of a function and returns its answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass

import aiohttp
from multidict import CIMultiDict

from chiron.gateway.connections import Answer, NotConnectedError
from chiron.gateway.registry import Function
from chiron.workflow.errors import ChironError

#: The largest body of a request to a function.
LARGEST_BYTES = 64 << 20
_CONNECT_ATTEMPTS = 5
_BETWEEN_ATTEMPTS_S = 0.02
#: The methods of requests that are sent again if their connection ends (RFC 9110, section 9.2.2).
_IDEMPOTENT = ("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE")
_LOST = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)


def too_large() -> ChironError:
    """Return the refusal (413) of a body above `LARGEST_BYTES`."""
    message = f"the request's body is larger than {LARGEST_BYTES >> 20} MiB"
    return ChironError("too-large", message, status=413)


class StreamedBody:
    """A body that is streamed as it arrives, up to `LARGEST_BYTES`.

    Args:
        limit_s: the time that the caller has for all pieces together, in seconds.
        late: the refusal (408) after that time.
    """

    def __init__(self, source: aiohttp.StreamReader, limit_s: float, late: ChironError) -> None:
        #: The reason if it was aborted.
        self.refused: ChironError | None = None
        #: The bytes received so far.
        self.size = 0
        self._source = source
        self._limit_s = limit_s
        self._late = late

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield its pieces; ChironError (408, 413) instead of a late piece or beyond the limit."""
        left_s = self._limit_s
        while True:
            # Counts only the caller's time, not the function's.
            asked = time.monotonic()
            try:
                async with asyncio.timeout(left_s):
                    piece = await self._source.readany()
            except TimeoutError:
                self.refused = self._late
                raise self.refused from None
            left_s -= time.monotonic() - asked
            if not piece:
                return
            self.size += len(piece)
            if self.size > LARGEST_BYTES:
                self.refused = too_large()
                raise self.refused
            yield piece


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """A request to a function; `target` is its path and query without leading slash."""

    method: str
    target: str
    headers: CIMultiDict[str]
    body: bytes | StreamedBody | None

    @property
    def size(self) -> int:
        """The bytes of its body received so far."""
        return self.body.size if isinstance(self.body, StreamedBody) else len(self.body or b"")


@asynccontextmanager
async def exchange(function: Function, outgoing: OutgoingRequest) -> AsyncIterator[Answer]:
    """Send `outgoing` to a replica, waiting for one to be ready; yield the answer's head.

    The timeout of the answer starts when a replica is ready, and covers the caller's use of the
    answer.

    Raises ChironError: 503 no replica gets ready, 429 all are full, 504 the answer took too long,
    502 the process closed the connection, 413 the request's body is too large.
    """
    limit_s = function.limits.answer_s
    method, body = outgoing.method, outgoing.body
    large = body if isinstance(body, StreamedBody) else None
    with function.admit():
        for attempt in range(1, _CONNECT_ATTEMPTS + 1):
            replica = await function.wait_ready()
            room = replica.large if large else nullcontext()
            with replica.busy():
                try:
                    sent = replica.connections.request(
                        method, outgoing.target, outgoing.headers, body
                    )
                    async with asyncio.timeout(limit_s), room, sent as answer:
                        replica.heard = True
                        yield answer
                        return
                except TimeoutError as error:
                    message = f"function {function.name}: no answer within {limit_s:g} s"
                    raise ChironError("timeout", message, status=504) from error
                except aiohttp.ClientError as error:
                    if large and large.refused:
                        raise large.refused from error
                    # Nothing was sent if its process ended before it accepted the connection.
                    refused = isinstance(error, NotConnectedError)
                    replica.unreachable |= refused
                    again = attempt == 1 and not large and method in _IDEMPOTENT
                    if attempt == _CONNECT_ATTEMPTS or not (
                        refused or (again and isinstance(error, _LOST))
                    ):
                        why = (
                            await replica.broken_connection_cause()
                            or f"the process closed the connection: {error}"
                        )
                        message = f"function {function.name}: {why}"
                        raise ChironError("broken-off", message, status=502) from error
            await asyncio.sleep(_BETWEEN_ATTEMPTS_S)
