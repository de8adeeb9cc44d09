"""The function URL: passes a request on to the function and its answer back. The hot path."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

from gateway.bodies import LARGEST_BYTES, Pieces, too_large
from gateway.errors import GatewayError
from gateway.exchange import Outgoing, exchange
from gateway.function import Function
from gateway.metrics import Metrics
from gateway.registry import Registry

PROVIDER = "chiron-embedded"
VERSION = metadata.version("chiron-openfaas")
_SERVED_BY = f"{PROVIDER}/{VERSION}"
# RFC 9110, section 7.6.1, and what aiohttp sets for its own side of each connection.
_NOT_FORWARDED = frozenset(
    {
        "connection",
        "content-length",
        "date",
        "expect",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
# Up to here a body is held whole, which costs less than to pass it on piece by piece.
WHOLE_BODY_BYTES = 1 << 20
#: How a call is counted whose client hung up before the answer: this status is never sent.
_CLIENT_GONE = 499


@dataclass(slots=True)
class Call:
    """One call of a function: its id, and when it arrived (wall clock and monotonic)."""

    ident: str
    start_ns: int = field(default_factory=time.time_ns)
    start: float = field(default_factory=time.perf_counter)

    @classmethod
    def of(cls, request: web.BaseRequest) -> Call:
        """The call that `request` makes; a caller may bring its own id."""
        return cls(request.headers.get("X-Call-Id") or str(uuid.uuid4()))

    def seconds(self) -> float:
        """Time since the call arrived."""
        return time.perf_counter() - self.start

    def mark(self, headers: CIMultiDict[str]) -> CIMultiDict[str]:
        """Add the headers that OpenFaaS adds to an answer."""
        headers["X-Call-Id"] = self.ident
        headers["X-Start-Time"] = str(self.start_ns)
        headers["X-Duration-Seconds"] = f"{self.seconds():.6f}"
        headers["X-Served-By"] = _SERVED_BY
        return headers


def forwarded(headers: Mapping[str, str]) -> CIMultiDict[str]:
    """The end-to-end headers among `headers`."""
    dropped = _NOT_FORWARDED
    if "Connection" in headers:
        named = (part.strip().lower() for part in headers["Connection"].split(","))
        dropped = dropped.union(named)
    return CIMultiDict(
        (name, value) for name, value in headers.items() if name.lower() not in dropped
    )


class Proxy:
    """Serves ``/function/NAME`` and what is below."""

    def __init__(self, registry: Registry, metrics: Metrics) -> None:
        self._registry = registry
        self._metrics = metrics

    async def invoke(self, request: web.Request) -> web.StreamResponse:
        """Answer with the function's answer, or 404, 408, 413, 429, 502, 503, 504 in plain text."""
        call = Call.of(request)
        name = request.match_info["name"]
        function = self._registry.find(name)
        if function is None:
            return refusal(call, 404, f"function {name} not found")
        relay = _Relay(request, call)
        answer: web.StreamResponse
        try:
            outgoing = await _outgoing(request, call, function)
            async with exchange(function, outgoing) as response:
                answer = await relay.answer(response)
        except GatewayError as error:
            answer = relay.broken_off() or refusal(call, error.status, error.message)
        except asyncio.CancelledError:
            self._metrics.record(function.name, _CLIENT_GONE, call.seconds())
            raise
        self._metrics.record(function.name, answer.status, call.seconds())
        return answer


async def _outgoing(request: web.Request, call: Call, function: Function) -> Outgoing:
    headers = forwarded(request.headers)
    headers["X-Call-Id"] = call.ident
    headers["X-Start-Time"] = str(call.start_ns)
    body: bytes | Pieces | None = None
    length = request.content_length
    if length is not None and length > LARGEST_BYTES:
        raise too_large()
    if length is not None and length <= WHOLE_BODY_BYTES:
        body = await read_body(request, function)
    elif request.body_exists:
        body = Pieces(request.content, function.limits.read_s, _late(function))
        if length is not None:
            headers["Content-Length"] = str(length)
    return Outgoing(request.method, target(request), headers, body)


async def read_body(request: web.Request, function: Function) -> bytes:
    """The whole body of a request; GatewayError (408) if it does not come in time."""
    try:
        async with asyncio.timeout(function.limits.read_s):
            return await request.read()
    except TimeoutError as error:
        raise _late(function) from error


def _late(function: Function) -> GatewayError:
    message = f"function {function.name}: the request's body did not come in time"
    return GatewayError("request-timeout", message, 408)


def target(request: web.Request) -> str:
    """What follows ``/function/NAME/`` in the request's URL, its query included."""
    url = request.rel_url
    path = url.raw_path.split("/", 3)[3:]
    rest = path[0] if path else ""
    return f"{rest}?{url.raw_query_string}" if url.raw_query_string else rest


def refusal(call: Call, status: int, message: str) -> web.Response:
    """The gateway's own answer to a call, in plain text."""
    return web.Response(status=status, text=message + "\n", headers=call.mark(CIMultiDict()))


class _Relay:
    """Turns a function's answer into the gateway's."""

    def __init__(self, request: web.Request, call: Call) -> None:
        self._request = request
        self._call = call
        self._streamed: web.StreamResponse | None = None

    async def answer(self, response: aiohttp.ClientResponse) -> web.StreamResponse:
        """Pass the answer on, whole if it is small, else while it comes."""
        length = response.content_length
        if self._request.method == "HEAD" or (length is not None and length <= WHOLE_BODY_BYTES):
            body = await response.read()
            headers = self._headers(response)
            if self._request.method == "HEAD" and length is not None:
                headers["Content-Length"] = str(length)
            return web.Response(
                status=response.status, reason=response.reason, body=body, headers=headers
            )
        return await self._stream(response)

    async def _stream(self, response: aiohttp.ClientResponse) -> web.StreamResponse:
        answer = web.StreamResponse(
            status=response.status, reason=response.reason, headers=self._headers(response)
        )
        answer.content_length = response.content_length
        await answer.prepare(self._request)
        self._streamed = answer
        async for piece in response.content.iter_any():
            await answer.write(piece)
        await answer.write_eof()
        return answer

    def broken_off(self) -> web.StreamResponse | None:
        """End an answer whose head is sent already; None if there is none.

        Only a broken connection still tells the caller that the body is not whole.
        """
        if self._streamed is not None and self._request.transport is not None:
            self._request.transport.abort()
        return self._streamed

    def _headers(self, response: aiohttp.ClientResponse) -> CIMultiDict[str]:
        return self._call.mark(forwarded(response.headers))
