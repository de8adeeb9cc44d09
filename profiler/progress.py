"""Lines about a profile in progress: failures at once, and how far slow functions are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from chiron.deployment.deploy import Progress
from chiron.deployment.function_error import FunctionFailedError
from chiron.profiler.inputs import Run
from chiron.workflow.errors import ChironError

#: The time of runs after which there is a line about them, in milliseconds.
_SILENT_MS = 10_000.0
#: The runs of a workflow for the inputs of its functions.
WORKFLOW_RUNS = 3


class Failures(dict[str, ChironError]):
    """The reasons why functions could not be profiled, reported as soon as they occur."""

    def __init__(self, say: Progress) -> None:
        super().__init__()
        self._say = say

    def __setitem__(self, function: str, error: ChironError) -> None:
        self._say(error.message)
        super().__setitem__(function, error)

    @contextmanager
    def of(self, function: str) -> Iterator[None]:
        """Record a failure in the block as the function's, so that the other functions continue."""
        try:
            yield
        except ChironError as error:
            self[function] = error


class SlowRuns:
    """Reports the runs of one function, with a line after every ten seconds of them.

    Args:
        planned: returns the number of runs in all for a latency in milliseconds.
    """

    def __init__(self, function: str, say: Progress, planned: Callable[[float], int]) -> None:
        self._function, self._say, self._planned = function, say, planned
        self._done, self._silent_ms = 0, 0.0

    def ran(self, latency_ms: float, number: int = 1) -> None:
        """Count `number` runs of `latency_ms` each."""
        self._done += number
        self._silent_ms += number * latency_ms
        if self._silent_ms >= _SILENT_MS:
            self._silent_ms = 0.0
            planned = max(self._done, self._planned(latency_ms))
            left_s = (planned - self._done) * latency_ms / 1000
            of = f"{self._done} of {planned} runs"
            self._say(f"profiling {self._function}: {of}, about {left_s:.0f} s left")


class WorkflowRuns:
    """Runs the functions of a workflow alone; names the run of slow and of failing functions."""

    def __init__(self, say: Progress) -> None:
        self._say = say
        self._answered = set[str]()

    def number(self, number: int, payload: str, run: Run) -> Run:
        """Return `run` for the run `number` of the workflow, from 1, with that payload."""
        which = f"run {number} of {WORKFLOW_RUNS} of the workflow with {payload}"

        def told(
            function: str, text: str, limit_s: float | None = None
        ) -> tuple[Mapping[str, str], float]:
            try:
                outputs, latency_ms = run(function, text, limit_s)
            except FunctionFailedError as error:
                mend = "correct the function or the payload"
                if function in self._answered:
                    mend = "it answered before: let it retry what fails at random"
                error.add(f"in {which}; {mend}")
                raise
            self._answered.add(function)
            if latency_ms >= _SILENT_MS:
                self._say(f"{function} took {latency_ms / 1000:.0f} s in {which}")
            return outputs, latency_ms

        return told
