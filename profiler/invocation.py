"""One solo invocation of a function, timed by the wrap that runs it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from requests import Response

from profiler.launcher import Caller
from profiler.probe_run import ProbeRun, probe_run, read_ticks
from profiler.reference_loop import Pace, pace
from workflow.errors import ChironError
from workflow.tracing import trace_header

_SHOWN = 300
_NOT_PACED = Pace(0.0, 0.0)


@dataclass(frozen=True)
class Invocation:
    """One run of a function.

    Attributes
    ----------
    latency_ms
        How long its handler took, without the time in which its thread had no core since other
        programs had them: that is the machine's, and no other run's.
    delayed_ms
        That time.
    probed
        What the probe saw, if it was asked for.
    pace
        By what the reference loop took in the same thread right before and after; zeros where
        it was not asked for.
    """

    output: str
    latency_ms: float
    delayed_ms: float = 0.0
    probed: ProbeRun | None = None
    pace: Pace = _NOT_PACED


@dataclass(frozen=True)
class Solo:
    """A function alone in the wrap `wrap`, with the inputs that it gets in its workflow."""

    gateway: Caller
    trace_key: str
    wrap: str
    function: str
    requests: Sequence[bytes]

    def invoke(self, number: int = 0, *, probed: bool = False, paced: bool = False) -> Invocation:
        """Run it once, on its input `number` of those that it has in turn.

        Parameters
        ----------
        probed
            Whether beside the probe of the GIL.
        paced
            Whether between two runs of the reference loop.

        Raises
        ------
        ChironError
            ``function-failed`` or what the gateway raises, always with the function's name.
        """
        try:
            request = self.requests[number % len(self.requests)]
            headers = trace_header(self.trace_key, "probe" if probed else "pace" if paced else "")
            response = self.gateway.invoke(self.wrap, request, headers=headers)
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
            seen = probe_run(read_ticks(run["ticks"])) if probed else None
            whole_ms, delayed_ms = run["end_ms"] - run["start_ms"], run["delayed_ms"]
            latency_ms = max(0.0, float(whole_ms - delayed_ms))
            beside = pace(run["reference_ms"]) if paced else _NOT_PACED
            return Invocation(str(answer["output"]), latency_ms, delayed_ms, seen, beside)
        except (ValueError, KeyError, TypeError, IndexError, ZeroDivisionError):
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
