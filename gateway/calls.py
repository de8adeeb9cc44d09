"""What is the same for every call of a function: its id, its headers, its errors."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from aiohttp import web
from multidict import CIMultiDict

from gateway.version import PROVIDER, VERSION

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
