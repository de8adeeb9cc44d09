"""Calls deployed functions with as little overhead of the client as Python allows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self
from urllib.parse import quote

import urllib3

from chiron.deployment.function_error import timeout_error
from chiron.openfaas.function_headers import function_headers
from chiron.workflow.errors import ChironError

#: Connections kept open: a one-to-one stage of this width opens no connection per request.
CONNECTIONS = 256


@dataclass(frozen=True)
class Reply:
    """A function's answer, and its latency on the client's clock."""

    status: int
    body: bytes
    latency_ms: float
    content_type: str = ""


class Caller:
    """Keep-alive connections to the functions behind one gateway; threads may share them.

    `options` are those of `chiron.openfaas.client.Gateway.pool_options`.
    """

    def __init__(
        self, url: str, timeout_s: float = 60.0, options: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        self._url = url.rstrip("/")
        self._timeout_s = timeout_s
        options = {"maxsize": CONNECTIONS, "retries": False, **options}
        kind = urllib3.ProxyManager if "proxy_url" in options else urllib3.PoolManager
        self._pool = kind(**options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._pool.clear()

    def call(
        self,
        name: str,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Reply:
        """POST `body` to the function `name`; any status is a reply.

        Raises ``no-gateway`` if nothing answers; ``timeout`` after the smaller of `timeout_s` and
        the timeout of all calls.
        """
        patience_s = min(self._timeout_s, timeout_s or self._timeout_s)
        url = f"{self._url}/function/{quote(name, safe='')}"
        sent = {**function_headers(body), **(headers or {})}
        start = time.perf_counter()
        try:
            response = self._pool.request(
                "POST", url, body=body, headers=sent, timeout=patience_s, redirect=False
            )
        except urllib3.exceptions.ReadTimeoutError:
            raise timeout_error(name, patience_s) from None
        except urllib3.exceptions.HTTPError as error:
            message = f"no gateway answers at {self._url}: {type(error).__name__}"
            raise ChironError("no-gateway", message, status=502) from None
        latency_ms = (time.perf_counter() - start) * 1000
        kind = response.headers.get("Content-Type", "")
        return Reply(response.status, response.data, latency_ms, kind)
