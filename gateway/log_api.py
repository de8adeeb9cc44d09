"""GET /system/logs: a function's log as chunked NDJSON, optionally followed while it grows."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from datetime import UTC, datetime

from aiohttp import web

from gateway.errors import GatewayError
from gateway.function import Function
from gateway.logs import Line
from gateway.names import NAMESPACE

_AT_ONCE = 100
_PAUSE_S = 0.01


async def stream_logs(request: web.Request, function: Function) -> web.StreamResponse:
    """Answer with the lines that the query's since, tail and instance select; follow if asked."""
    query = request.query
    since = _time(query.get("since"))
    tail = _tail(query.get("tail"))
    instance = query.get("instance")
    answer = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
    answer.enable_chunked_encoding()
    await answer.prepare(request)
    log = function.log
    next_line = log.written
    with contextlib.suppress(ConnectionError):  # the reader may leave at any time
        await _send(answer, function.name, log.read(since, instance, tail))
        if query.get("follow") in ("1", "true"):
            async for lines in log.follow(next_line, instance):
                await _send(answer, function.name, lines)
        await answer.write_eof()
    return answer


async def _send(answer: web.StreamResponse, name: str, lines: list[Line]) -> None:
    """Send lines a few at a time: calls of functions go on meanwhile."""
    for start in range(0, len(lines), _AT_ONCE):
        await answer.write(b"".join(_record(name, each) for each in lines[start:][:_AT_ONCE]))
        await asyncio.sleep(_PAUSE_S)


def _record(name: str, line: Line) -> bytes:
    record = {
        "name": name,
        "namespace": NAMESPACE,
        "instance": line.instance,
        "timestamp": line.time.isoformat().replace("+00:00", "Z"),
        "text": line.text,
    }
    return json.dumps(record).encode() + b"\n"


def _time(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        # Go writes nanoseconds, which datetime does not know.
        time = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text))
    except ValueError as error:
        raise GatewayError("bad-time", f"since: {text!r} is not an RFC 3339 time") from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _tail(text: str | None) -> int | None:
    """The number of lines; None for all, which faas-cli says as -1."""
    try:
        lines = int(text or -1)
    except ValueError as error:
        raise GatewayError("bad-tail", f"tail: {text!r} is not a number of lines") from error
    return None if lines < 0 else lines
