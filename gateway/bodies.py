"""Reads the bodies of requests: JSON of the management API, and large ones piece by piece."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from aiohttp import web

from gateway.errors import GatewayError

#: The largest body that a function may be sent.
LARGEST_BYTES = 64 << 20
#: How much of a body a connection reads ahead of who takes it (aiohttp holds up to twice as much).
#: With aiohttp's 64 KiB, reading halts and goes on again after every piece of a large one.
READ_AHEAD_BYTES = 1 << 19
_TIMEOUT_S = 30.0


async def read_json(request: web.Request) -> dict[str, Any]:
    """The request's JSON object; GatewayError: 400 if it is none, 408 if it does not come."""
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            body = await request.json()
    except TimeoutError as error:
        message = f"the request's body did not come within {_TIMEOUT_S:g} s"
        raise GatewayError("request-timeout", message, 408) from error
    except ValueError as error:
        raise GatewayError("bad-json", f"request body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise GatewayError("bad-json", "request body is not a JSON object")
    return body


def text_field(body: dict[str, Any], name: str) -> str:
    """A field that must be there and be text; raises GatewayError (400)."""
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise GatewayError("bad-field", f"{name}: missing, or not text")
    return value


def too_large() -> GatewayError:
    """The refusal (413) of a body above `LARGEST_BYTES`."""
    message = f"the request's body is larger than {LARGEST_BYTES >> 20} MiB"
    return GatewayError("too-large", message, 413)


class Pieces:
    """A body that is passed on while it comes, up to `LARGEST_BYTES`.

    Attributes:
        refused: why it was broken off, once it was.
    """

    def __init__(self, source: aiohttp.StreamReader) -> None:
        self.refused: GatewayError | None = None
        self._source = source

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Its pieces; GatewayError (413) in place of the first one beyond the limit."""
        size = 0
        async for piece in self._source.iter_any():
            size += len(piece)
            if size > LARGEST_BYTES:
                self.refused = too_large()
                raise self.refused
            yield piece
