"""The function URLs, the hot path: forward a request to the function, and its answer back.

An asynchronous call is accepted at once and runs in the background; its answer goes to a callback.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

from chiron.gateway.backend import Tasks
from chiron.gateway.connections import Answer
from chiron.gateway.exchange import (
    LARGEST_BYTES,
    OutgoingRequest,
    StreamedBody,
    exchange,
    too_large,
)
from chiron.gateway.metrics import Metrics
from chiron.gateway.registry import Function, Registry
from chiron.workflow.errors import ChironError

PROVIDER = "chiron-embedded"
VERSION = metadata.version("chiron-openfaas")
_SERVED_BY = f"{PROVIDER}/{VERSION}"
# RFC 9110, section 7.6.1, and what aiohttp sets for its own side of each connection.
_NOT_FORWARDED = frozenset(
    (
        *("connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding"),
        *("upgrade", "proxy-authenticate", "proxy-authorization"),
        *("content-length", "expect", "host"),
    )
)
# Bodies up to this size are buffered whole, which costs less than streaming.
WHOLE_BODY_BYTES = 1 << 20
#: The status in the metrics of a call whose client hung up before the answer; it is never sent.
_CLIENT_GONE = 499
#: Refusals that hold for a moment: too many calls, and no replica that is ready.
_TRY_LATER = (429, 503)
#: The most asynchronous calls that run at once, and the most that wait or run.
_AT_ONCE = 16
_QUEUED = 1000
_CALLBACK_TIMEOUT_S = 30.0
_Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Call:
    """One call of a function: its id, and its arrival (wall clock and monotonic)."""

    ident: str
    start_ns: int = field(default_factory=time.time_ns)
    start: float = field(default_factory=time.perf_counter)

    @classmethod
    def of(cls, request: web.BaseRequest) -> Call:
        """Return the call of `request`; its id is the caller's, if given."""
        return cls(request.headers.get("X-Call-Id") or str(uuid.uuid4()))

    def seconds(self) -> float:
        return time.perf_counter() - self.start

    def mark(self, headers: CIMultiDict[str]) -> CIMultiDict[str]:
        """Add the headers that OpenFaaS adds to an answer."""
        headers["X-Call-Id"] = self.ident
        headers["X-Start-Time"] = str(self.start_ns)
        headers["X-Duration-Seconds"] = f"{self.seconds():.6f}"
        headers["X-Served-By"] = _SERVED_BY
        return headers


def forwarded(headers: Mapping[str, str]) -> CIMultiDict[str]:
    """Return the end-to-end headers among `headers`."""
    left_out = _NOT_FORWARDED
    if named := headers.get("Connection"):
        left_out |= {part.strip().lower() for part in named.split(",")}
    return CIMultiDict([each for each in headers.items() if each[0].lower() not in left_out])


class Proxy:
    """Serves ``/function/NAME`` and ``/async-function/NAME``, whose queue ends with the gateway."""

    def __init__(self, registry: Registry, metrics: Metrics) -> None:
        self._registry = registry
        self._metrics = metrics
        self._running = asyncio.Semaphore(_AT_ONCE)
        self._calls = Tasks()

    def ahead_of(self, routed: _Handler) -> _Handler:
        """Return a handler that forwards the calls of functions, and passes the rest to `routed`.

        The search for a route takes up to a quarter of the CPU of aiohttp's server.
        """

        def handle(request: web.BaseRequest) -> Awaitable[web.StreamResponse]:
            parts = request.rel_url.raw_path.split("/", 3)
            if len(parts) > 2 and parts[1] == "function" and "Expect" not in request.headers:
                function = self._registry.find(parts[2])
                if function:
                    return self._forward(request, function)
            return routed(request)

        return handle

    async def invoke(self, request: web.Request) -> web.StreamResponse:
        """Forward a call; 404 in plain text for an unknown function."""
        name = request.match_info["name"]
        function = self._registry.find(name)
        if function is None:
            return _refusal(Call.of(request), 404, f"function {name} not found")
        return await self._forward(request, function)

    async def _forward(self, request: web.BaseRequest, function: Function) -> web.StreamResponse:
        """Answer with the function's answer, or 408, 413, 429, 502, 503, 504 in plain text."""
        call = Call.of(request)
        answer: web.StreamResponse | None = None
        size = 0
        try:
            outgoing = await _outgoing(request, call, function)
            async with exchange(function, outgoing) as response:
                answer = await _begin(request, call, response)
                if not isinstance(answer, web.Response):
                    async for piece in response.content.iter_any():
                        await answer.write(piece)
                        size += len(piece)
                    await answer.write_eof()
            size += outgoing.size
        except ChironError as error:
            if answer is None or isinstance(answer, web.Response):
                answer = _refusal(call, error.status, error.message)
            elif request.transport is not None:
                # Only a broken connection can signal now that the body is incomplete.
                request.transport.abort()
        except asyncio.CancelledError:
            self._metrics.record(function.name, _CLIENT_GONE, call.seconds())
            raise
        if isinstance(answer, web.Response):
            size += answer.content_length or 0
        self._metrics.record(function.name, answer.status, call.seconds(), size)
        return answer

    async def accept(self, request: web.Request) -> web.Response:
        """Queue the call: 202 and its id. 404 for an unknown function, 429 if the queue is full."""
        call = Call.of(request)
        name = request.match_info["name"]
        function = self._registry.find(name)
        if function is None:
            return _refusal(call, 404, f"function {name} not found")
        if len(self._calls) >= _QUEUED:
            return _refusal(call, 429, f"{_QUEUED} asynchronous calls are queued already")
        try:
            body = await _read_body(request, function)
        except ChironError as error:
            return _refusal(call, error.status, error.message)
        headers = forwarded(request.headers)
        callback = headers.pop("X-Callback-Url", None)
        headers["X-Call-Id"] = call.ident
        outgoing = OutgoingRequest(request.method, _target(request), headers, body)
        self._calls.spawn(self._run(call, function, outgoing, callback))
        return web.Response(status=202, headers=call.mark(CIMultiDict()))

    async def close(self) -> None:
        """Drop all asynchronous calls, including running calls."""
        for task in self._calls:
            task.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)

    async def _run(
        self, call: Call, function: Function, outgoing: OutgoingRequest, callback: str | None
    ) -> None:
        async with self._running:
            try:
                async with exchange(function, outgoing) as response:
                    status, headers = response.status, forwarded(response.headers)
                    body = await response.content.read()
            except ChironError as error:
                headers = CIMultiDict({"Content-Type": "text/plain"})
                status, body = error.status, error.message.encode()
        self._metrics.record(function.name, status, call.seconds(), outgoing.size + len(body))
        if callback:
            headers["X-Function-Name"] = function.name
            headers["X-Function-Status"] = str(status)
            await _deliver(callback, call.mark(headers), body)


async def _deliver(callback: str, headers: CIMultiDict[str], body: bytes) -> None:
    timeout = aiohttp.ClientTimeout(total=_CALLBACK_TIMEOUT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as http,
            http.post(callback, headers=headers, data=body),
        ):
            pass
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        _log.warning("callback %s: %s: %s", callback, type(error).__name__, error)


async def _outgoing(request: web.BaseRequest, call: Call, function: Function) -> OutgoingRequest:
    headers = forwarded(request.headers)
    headers["X-Call-Id"] = call.ident
    headers["X-Start-Time"] = str(call.start_ns)
    body: bytes | StreamedBody | None = None
    length = request.content_length
    if length is not None and length > LARGEST_BYTES:
        raise too_large()
    if length is not None and length <= WHOLE_BODY_BYTES:
        here = request.content.is_eof()  # it came with the head
        body = request.content.read_nowait() if here else await _read_body(request, function)
    elif request.body_exists:
        body = StreamedBody(request.content, function.limits.read_s, _late(function))
        if length is not None:
            headers["Content-Length"] = str(length)
    return OutgoingRequest(request.method, _target(request), headers, body)


async def _read_body(request: web.BaseRequest, function: Function) -> bytes:
    """Return the whole body of a request; ChironError (408) after the timeout."""
    try:
        async with asyncio.timeout(function.limits.read_s):
            return await request.read()
    except TimeoutError as error:
        raise _late(function) from error


def _late(function: Function) -> ChironError:
    message = f"function {function.name}: the request's body did not come in time"
    return ChironError("request-timeout", message, status=408)


def _target(request: web.BaseRequest) -> str:
    """Return the part of the request's URL after ``/function/NAME/``, with its query."""
    url = request.rel_url
    path = url.raw_path.split("/", 3)[3:]
    rest = path[0] if path else ""
    return f"{rest}?{url.raw_query_string}" if url.raw_query_string else rest


def _refusal(call: Call, status: int, message: str) -> web.Response:
    """The gateway's own answer to a call, in plain text."""
    headers = CIMultiDict({"Retry-After": "1"} if status in _TRY_LATER else {})
    return web.Response(status=status, text=message + "\n", headers=call.mark(headers))


async def _begin(request: web.BaseRequest, call: Call, response: Answer) -> web.StreamResponse:
    """Return the function's answer, whole if small; else send its head, for the body to follow."""
    length = response.content_length
    headers = forwarded(response.headers)
    if request.method == "HEAD" and length is not None:
        headers["Content-Length"] = str(length)
    if request.method == "HEAD" or (length is not None and length <= WHOLE_BODY_BYTES):
        content = response.content
        body = content.read_nowait() if content.is_eof() else await content.read()
        return web.Response(
            status=response.status, reason=response.reason, body=body, headers=call.mark(headers)
        )
    answer = web.StreamResponse(
        status=response.status, reason=response.reason, headers=call.mark(headers)
    )
    answer.content_length = length
    await answer.prepare(request)
    return answer
