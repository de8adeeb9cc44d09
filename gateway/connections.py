"""The keep-alive connections to one replica: send a request, return its answer.

aiohttp's ClientSession takes 2.6 times the CPU, for URLs, redirects, cookies, defaults and a task
for each body. This is the same protocol without it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError, StreamWriter
from multidict import CIMultiDict, CIMultiDictProxy

from chiron.gateway.backend import Child

#: Bytes of a body that a connection buffers ahead of its consumer (aiohttp buffers up to twice as
#: many). With aiohttp's 64 KiB, reading pauses and resumes after every piece of a large body.
READ_AHEAD_BYTES = 1 << 19
#: The most connections: below waitress's connection_limit of 100, so that no connection waits while
#: others are idle.
CONNECTIONS = 96
# Below waitress's channel_timeout of 120 s, so that the server never hangs up first.
_KEEPALIVE_S = 30.0
_WITHOUT_BODY = ("GET", "HEAD", "OPTIONS", "TRACE")


class NotConnectedError(aiohttp.ClientError):
    """The replica accepted no connection: nothing was sent."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The head of an answer, and its body as it arrives."""

    status: int
    reason: str
    headers: CIMultiDictProxy[str]
    content: aiohttp.StreamReader

    @property
    def content_length(self) -> int | None:
        """The bytes of its body by its head; None if the head does not say."""
        length = self.headers.get("Content-Length")
        return None if length is None else int(length)


class Connections:
    """The connections to a replica, which listens once its `child` has started."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._places = asyncio.Semaphore(CONNECTIONS)
        #: Connections without a request, and when their last answer ended (time.monotonic).
        self._idle: deque[tuple[ResponseHandler, float]] = deque()
        self._closed = False

    def close(self) -> None:
        """Close the idle connections now, and every other connection at the end of its request."""
        self._closed = True
        while self._idle:
            self._idle.pop()[0].close()

    @asynccontextmanager
    async def request(
        self,
        method: str,
        target: str = "",
        headers: CIMultiDict[str] | None = None,
        body: bytes | AsyncIterable[bytes] | None = None,
    ) -> AsyncIterator[Answer]:
        """Send a request on a connection of its own; yield the answer.

        `target` is the path and query without leading slash. A body in pieces is sent while the
        answer comes; its length is that in `headers`, if any.

        Raises NotConnectedError, and aiohttp.ClientError for a connection or answer that breaks.
        """
        async with self._places:
            connection = await self._connection()
            sending = None
            is_reusable = False
            try:
                sending = await self._send(connection, method, target, headers, body)
                yield await _answer(connection)
                if sending:
                    await sending
                is_reusable = not (connection.should_close or self._closed)
            finally:
                if sending:
                    sending.cancel()
                if is_reusable:
                    self._idle.append((connection, time.monotonic()))
                else:
                    connection.close()

    async def _connection(self) -> ResponseHandler:
        """Return the connection that was used last, or a new connection."""
        oldest = time.monotonic() - _KEEPALIVE_S
        while self._idle and self._idle[0][1] < oldest:
            self._idle.popleft()[0].close()
        while self._idle:
            connection, _ = self._idle.pop()
            if connection.is_connected():
                return connection
        loop = asyncio.get_running_loop()
        try:
            _, connection = await loop.create_connection(
                partial(ResponseHandler, loop), self._child.host, self._child.port
            )
        except OSError as error:
            raise NotConnectedError(str(error)) from error
        return connection

    async def _send(
        self,
        connection: ResponseHandler,
        method: str,
        target: str,
        headers: CIMultiDict[str] | None,
        body: bytes | AsyncIterable[bytes] | None,
    ) -> asyncio.Task[None] | None:
        """Send a request, or begin to; return the task that sends the pieces of its body."""
        connection.set_response_params(
            skip_payload=method == "HEAD",
            read_until_eof=True,
            auto_decompress=False,
            read_bufsize=READ_AHEAD_BYTES,
        )
        writer = StreamWriter(connection, asyncio.get_running_loop())
        sent = CIMultiDict(headers or {}, Host=f"{self._child.host}:{self._child.port}")
        start = f"{method} /{target} HTTP/1.1"
        if body is None or isinstance(body, bytes):
            if body is not None or method not in _WITHOUT_BODY:
                sent["Content-Length"] = str(len(body or b""))
            await writer.write_headers(start, sent)
            await writer.write(body or b"", drain=False)
            return None
        if "Content-Length" not in sent:
            sent["Transfer-Encoding"] = "chunked"
            writer.enable_chunking()
        await writer.write_headers(start, sent)
        return asyncio.create_task(_send_pieces(connection, writer, body))


async def _send_pieces(
    connection: ResponseHandler, writer: StreamWriter, pieces: AsyncIterable[bytes]
) -> None:
    """Send the pieces of a body; an error ends the wait for the answer."""
    try:
        async for piece in pieces:
            await writer.write(piece)
        await writer.write_eof()
    except Exception as error:
        connection.set_exception(aiohttp.ClientConnectionError(str(error)), error)


async def _answer(connection: ResponseHandler) -> Answer:
    while True:
        try:
            head, content = await connection.read()
        except HttpProcessingError as error:
            raise aiohttp.ClientError(error.message) from error
        if head.code >= 200 or head.code == 101:  # the others announce an answer
            return Answer(head.code, head.reason, head.headers, content)
