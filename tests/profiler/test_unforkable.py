"""What a profile has of functions that do not do in forked processes what they do alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from chiron.deployment.function_error import FunctionFailedError
from chiron.profiler.function_profile import mixed, with_forks
from chiron.profiler.invocation import Invocation
from chiron.workflow.profile import FunctionProfile, Period
from chiron.wrap.functions.leftovers import RUN_ON, THREADS_RUN_ON

PERIOD = Period(kind="cpu", start_ms=0.0, duration_ms=10.0)


class Forked:
    """A function in forked processes, where `answer` gives what each run answers."""

    function = "count"

    def __init__(
        self, answer: Callable[[int], str], own_mib: Callable[[int], float | None] = float
    ) -> None:
        self._answer = answer
        self._own_mib = own_mib
        self.limits: list[float | None] = []

    def invoke(
        self, number: int = 0, *, limit_s: float | None = None, weighed: bool = False, **_: Any
    ) -> Invocation:
        self.limits.append(limit_s)
        own_mib = self._own_mib(len(self.limits)) if weighed else None
        answer = self._answer(len(self.limits))
        return Invocation(answer, latency_ms=12.0, own_mib=own_mib, processes_mib=3.0)


def known(**facts: Any) -> FunctionProfile:
    return FunctionProfile(latency_ms=10.0, periods=(PERIOD,), **facts)


def profiled(function: FunctionProfile, forked: Any) -> FunctionProfile:
    steps = with_forks(function, forked, str)
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            found: FunctionProfile = ended.value
            return found


@pytest.mark.parametrize(
    ("varies", "answer", "can"),
    [
        (True, str, True),
        (True, lambda _: "1", False),
        (False, lambda _: "1", True),
        (False, str, True),
    ],
)
def test_what_varies_has_to_vary_there(
    varies: bool, answer: Callable[[int], str], can: bool
) -> None:
    found = profiled(known(varies=varies), Forked(answer))
    assert (not found.unforkable) is can
    assert found.forked_ms == 12.0


def test_what_fails_there_is_not_a_failure_of_the_profile() -> None:
    def fails(_: int) -> str:
        raise FunctionFailedError("function-failed", "function count did not answer in time")

    forked = Forked(fails)
    found = profiled(known(), forked)
    assert found.unforkable == "it fails there: function count did not answer in time"
    assert found.forked_ms is None
    assert forked.limits == [10.0]


def test_what_takes_a_port_at_its_import_fails_in_two_at_once() -> None:
    both = threading.Barrier(2)

    def answer(run: int) -> str:
        if run in (3, 4) and both.wait(60):
            raise FunctionFailedError("function-failed", "function count: the port is taken")
        return "1"

    found = profiled(known(), Forked(answer))
    assert found.unforkable == "it fails in 2 of them at once: function count: the port is taken"


def test_a_run_there_may_take_several_times_as_long_as_alone() -> None:
    forked = Forked(str)
    slow = Period(kind="block", start_ms=0.0, duration_ms=20_000.0)
    profiled(FunctionProfile(latency_ms=20_000.0, periods=(slow,)), forked)
    assert forked.limits[0] == 100.0


@pytest.mark.parametrize(
    ("own_mib", "forked_mib"), [(lambda run: 50.0 - run, 52.0), (lambda _: None, None)]
)
def test_its_memory_there_is_the_most_of_a_run_with_its_largest_process(
    own_mib: Callable[[int], float | None], forked_mib: float | None
) -> None:
    assert profiled(known(), Forked(str, own_mib)).forked_mib == forked_mib


def test_of_several_payloads_one_is_enough() -> None:
    found = mixed([known(), known(varies=True, unforkable="it fails there")], [1.0, 1.0])
    assert (found.varies, found.unforkable) == (True, "it fails there")


@pytest.mark.parametrize(
    ("left", "what"), [(RUN_ON, "programs"), (THREADS_RUN_ON, "daemon threads")]
)
def test_what_runs_on_would_end_with_a_forked_process(left: str, what: str) -> None:
    found = profiled(known(unshareable=(left,)), Forked(str))
    assert found.unforkable == f"it leaves {what} running, which end with such a process"
