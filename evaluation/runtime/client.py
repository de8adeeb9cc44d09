"""A client that costs little and is the same for everything that is measured."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping
from typing import Any

from evaluation.runtime.deployment import Address
from workflow.errors import ChironError
from workflow.tracing import trace_header

_TIMEOUT_S = 60.0


class Client:
    """One kept-alive connection to a function."""

    def __init__(self, address: Address) -> None:
        self._connection = http.client.HTTPConnection(address.host, timeout=_TIMEOUT_S)
        self._path = address.path

    def post(self, body: bytes, headers: Mapping[str, str] | None = None) -> tuple[bytes, float]:
        """The answer to one request and its latency in milliseconds.

        Raises
        ------
        ChironError
            ``wrong-output`` unless the answer is 200.
        """
        given = {"Content-Type": "text/plain", **(headers or {})}
        start = time.perf_counter()
        self._connection.request("POST", self._path, body, given)
        response = self._connection.getresponse()
        answer = response.read()
        elapsed_ms = (time.perf_counter() - start) * 1000
        if response.status != 200:
            said = answer[:200].decode(errors="replace")
            raise ChironError("wrong-output", f"status {response.status}: {said}", status=500)
        return answer, elapsed_ms

    def latency_ms(self, body: bytes, expected: bytes) -> float:
        """The latency of a request; ``wrong-output`` unless `expected` comes back."""
        answer, elapsed_ms = self.post(body)
        if answer != expected:
            raise ChironError(
                "wrong-output",
                f"an answer of {len(answer)} bytes differs from the reference executor's",
                status=500,
            )
        return elapsed_ms

    def timeline(self, body: bytes, trace_key: str) -> list[dict[str, Any]]:
        """The timeline of a traced request."""
        answer, _ = self.post(body, trace_header(trace_key))
        rows: list[dict[str, Any]] = json.loads(answer)["timeline"]
        return rows

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
