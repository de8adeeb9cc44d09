"""One solo invocation of a function through the gateway, timed by the wrap that runs it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from requests import Response

from openfaas.client import Gateway
from workflow.errors import ChironError

_TRACE = {"X-Chiron-Trace": "1"}
_SHOWN = 300


@dataclass(frozen=True)
class Invocation:
    """What the function answered, and how long its handler ran."""

    output: str
    latency_ms: float


@dataclass(frozen=True)
class Solo:
    """A function alone in the wrap `wrap`, with the input that it gets in its workflow."""

    gateway: Gateway
    wrap: str
    function: str
    request: bytes

    def invoke(self) -> Invocation:
        """Run it once.

        Raises
        ------
        ChironError
            ``function-failed`` or what the gateway raises, always with the function's name.
        """
        try:
            response = self.gateway.invoke(self.wrap, self.request, headers=_TRACE)
        except ChironError as error:
            message = f"function {self.function} could not be profiled: {error.message}"
            raise ChironError(
                error.code, message, functions=[self.function], status=error.status
            ) from None
        if not response.ok:
            reason = _reason(response)
            raise self._failed(f"failed while it was profiled: {reason}")
        try:
            answer = json.loads(response.content)
            (run,) = (row for row in answer["timeline"] if row["kind"] == "run")
            return Invocation(str(answer["output"]), float(run["end_ms"] - run["start_ms"]))
        except (ValueError, KeyError, TypeError):
            raise self._failed("answered without a timeline: is it a wrap of chiron?") from None

    def _failed(self, how: str) -> ChironError:
        message = f"function {self.function} {how}"
        return ChironError("function-failed", message, functions=[self.function])


def _reason(response: Response) -> str:
    try:
        reason = str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        reason = f"the gateway answered {response.status_code}: {response.text}"
    return " ".join(reason.split())[:_SHOWN]
