"""Hands one request to a ready replica of a function and gives back its answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from gateway.function import Function

_CONNECT_ATTEMPTS = 5
_BETWEEN_ATTEMPTS_S = 0.02


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request as the function gets it; `target` is its path and query without leading slash."""

    method: str
    target: str
    headers: CIMultiDict[str]
    body: bytes | aiohttp.StreamReader | None


@asynccontextmanager
async def exchange(function: Function, outgoing: Outgoing) -> AsyncIterator[aiohttp.ClientResponse]:
    """Send `outgoing` to a replica, waiting for one to be ready; yields the answer's head.

    Raises:
        GatewayError: no replica gets ready or has room.
        aiohttp.ClientError: the process broke off the connection.
    """
    for attempt in range(1, _CONNECT_ATTEMPTS + 1):
        replica = await function.wait_ready()
        replica.enter()
        try:
            url = replica.url
            if outgoing.target:
                url = URL(f"{url}{outgoing.target}", encoded=True)
            async with replica.http.request(
                outgoing.method,
                url,
                headers=outgoing.headers,
                data=outgoing.body,
                allow_redirects=False,
            ) as response:
                yield response
                return
        except aiohttp.ClientConnectorError:
            # Its process has just ended, and nothing was sent: another one can have the request.
            if attempt == _CONNECT_ATTEMPTS:
                raise
        finally:
            replica.leave()
        await asyncio.sleep(_BETWEEN_ATTEMPTS_S)
