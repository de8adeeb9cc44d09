"""Hands one request to a ready replica of a function and gives back its answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from gateway.bodies import Pieces
from gateway.errors import GatewayError
from gateway.function import Function
from gateway.replica import Replica

_CONNECT_ATTEMPTS = 5
_BETWEEN_ATTEMPTS_S = 0.02


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request as the function gets it; `target` is its path and query without leading slash."""

    method: str
    target: str
    headers: CIMultiDict[str]
    body: bytes | Pieces | None

    @property
    def refused(self) -> GatewayError | None:
        """Why the body was broken off, if it was."""
        return self.body.refused if isinstance(self.body, Pieces) else None


@asynccontextmanager
async def exchange(function: Function, outgoing: Outgoing) -> AsyncIterator[aiohttp.ClientResponse]:
    """Send `outgoing` to a replica, waiting for one to be ready; yields the answer's head.

    The time that the function has for its answer starts when a replica is ready, and includes
    what the caller does with the answer.

    Raises:
        GatewayError: 503 no replica gets ready, 429 none has room, 504 the answer took too long,
            502 the process broke off the connection, 413 the request's body is too large.
    """
    with function.admit():
        async with _exchange(function, outgoing) as response:
            yield response


@asynccontextmanager
async def _exchange(
    function: Function, outgoing: Outgoing
) -> AsyncIterator[aiohttp.ClientResponse]:
    limit = function.limits.answer_s
    send = _send_large if isinstance(outgoing.body, Pieces) else _send
    for attempt in range(1, _CONNECT_ATTEMPTS + 1):
        replica = await function.wait_ready()
        replica.enter()
        try:
            async with asyncio.timeout(limit), send(replica, outgoing) as response:
                replica.heard = True
                yield response
                return
        except TimeoutError as error:
            raise GatewayError(
                "timeout", f"function {function.name}: no answer within {limit:g} s", 504
            ) from error
        except aiohttp.ClientError as error:
            if outgoing.refused:
                raise outgoing.refused from error
            # Nothing was sent if its process ended before it took the connection: go on to another.
            refused = isinstance(error, aiohttp.ClientConnectorError)
            replica.unreachable |= refused
            if attempt == _CONNECT_ATTEMPTS or not refused:
                why = await replica.how_it_broke() or f"its process broke off: {error}"
                raise GatewayError("broken-off", f"function {function.name}: {why}", 502) from error
        finally:
            replica.leave()
        await asyncio.sleep(_BETWEEN_ATTEMPTS_S)


def _send(
    replica: Replica, outgoing: Outgoing
) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
    url = replica.url
    if outgoing.target:
        url = URL(f"{url}{outgoing.target}", encoded=True)
    return replica.http.request(
        outgoing.method,
        url,
        headers=outgoing.headers,
        data=outgoing.body,
        allow_redirects=False,
    )


@asynccontextmanager
async def _send_large(
    replica: Replica, outgoing: Outgoing
) -> AsyncIterator[aiohttp.ClientResponse]:
    async with replica.large, _send(replica, outgoing) as response:
        yield response
