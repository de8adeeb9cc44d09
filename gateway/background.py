"""Asynchronous calls: accepted at once, run in the background, the answer sent to a callback."""

from __future__ import annotations

import asyncio
import logging

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

from gateway.errors import GatewayError
from gateway.exchange import Outgoing, exchange
from gateway.function import Function
from gateway.metrics import Metrics
from gateway.proxy import Call, forwarded, read_body, refusal, target
from gateway.registry import Registry

_AT_ONCE = 16
_QUEUED = 1000
_CALLBACK_TIMEOUT_S = 30.0
_OWN_HEADERS = ("X-Callback-Url", "X-Call-Id")
_log = logging.getLogger(__name__)


class AsyncCalls:
    """Serves ``/async-function/NAME``. What is queued is lost when the gateway ends."""

    def __init__(self, registry: Registry, metrics: Metrics) -> None:
        self._registry = registry
        self._metrics = metrics
        self._running = asyncio.Semaphore(_AT_ONCE)
        self._calls: set[asyncio.Task[None]] = set()

    async def accept(self, request: web.Request) -> web.Response:
        """Queue the call: 202 and its id. 404 for an unknown function, 429 if the queue is full."""
        call = Call.of(request)
        name = request.match_info["name"]
        function = self._registry.find(name)
        if function is None:
            return refusal(call, 404, f"function {name} not found")
        if len(self._calls) >= _QUEUED:
            return refusal(call, 429, f"{_QUEUED} asynchronous calls are queued already")
        try:
            body = await read_body(request, function)
        except GatewayError as error:
            return refusal(call, error.status, error.message)
        headers = forwarded(request.headers)
        for name in _OWN_HEADERS:
            headers.pop(name, None)
        headers["X-Call-Id"] = call.ident
        outgoing = Outgoing(request.method, target(request), headers, body)
        work = self._run(call, function, outgoing, request.headers.get("X-Callback-Url"))
        task = asyncio.create_task(work)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        return web.Response(status=202, headers=call.mark(CIMultiDict()))

    async def close(self) -> None:
        """Drop all calls, also those that run."""
        for task in self._calls:
            task.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)

    async def _run(
        self, call: Call, function: Function, outgoing: Outgoing, callback: str | None
    ) -> None:
        async with self._running:
            status, headers, body = await _answer(function, outgoing)
        self._metrics.record(function.name, status, call.seconds())
        if callback:
            headers["X-Function-Name"] = function.name
            headers["X-Function-Status"] = str(status)
            await _deliver(callback, call.mark(headers), body)


async def _answer(function: Function, outgoing: Outgoing) -> tuple[int, CIMultiDict[str], bytes]:
    """The function's status, headers and body, or the gateway's own for a call that failed."""
    try:
        async with exchange(function, outgoing) as response:
            return response.status, forwarded(response.headers), await response.read()
    except GatewayError as error:
        plain = CIMultiDict({"Content-Type": "text/plain"})
        return error.status, plain, error.message.encode()


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
