"""Reads the bodies of requests: JSON of the management API, and large ones piece by piece."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from aiohttp import web

from gateway.errors import GatewayError

#: The largest body that a function may be sent.
LARGEST_BYTES = 64 << 20
#: How much of a body a connection reads ahead of its consumer (aiohttp holds up to twice as much).
#: With aiohttp's 64 KiB, reading halts and goes on again after every piece of a large one.
READ_AHEAD_BYTES = 1 << 19
_TIMEOUT_S = 30.0


async def read_json(request: web.Request) -> dict[str, Any]:
    """The request's JSON object; GatewayError: 400 if it is none, 408 if it does not come."""
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            body = json.loads(await request.read())
        json.dumps(body, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    except TimeoutError as error:
        message = f"the request's body did not come within {_TIMEOUT_S:g} s"
        raise GatewayError("request-timeout", message, 408) from error
    except ValueError as error:
        raise GatewayError("bad-json", f"request body is not JSON: {error}") from error
    except RecursionError as error:
        raise GatewayError("bad-json", "request body is nested too deep") from error
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

    Args:
        limit_s: how long the caller may be waited for, all pieces together, in seconds.
        late: the refusal (408) of one that does not send it in time.

    Attributes:
        refused: why it was broken off, once it was.
    """

    def __init__(self, source: aiohttp.StreamReader, limit_s: float, late: GatewayError) -> None:
        self.refused: GatewayError | None = None
        self._source = source
        self._limit_s = limit_s
        self._late = late

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Its pieces; GatewayError (408, 413) in place of one that is late or beyond the limit."""
        size = 0
        left_s = self._limit_s
        while True:
            # What the function takes its time over is not the caller's.
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
            size += len(piece)
            if size > LARGEST_BYTES:
                self.refused = too_large()
                raise self.refused
            yield piece
