"""By how much a crowd of threads takes longer than its cores need, from runs of known length."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from chiron.profiler import contention_overhead
from chiron.profiler.contention_overhead import (
    Computing,
    CrowdRound,
    contention_overhead_quartiles,
    run_crowd,
)
from chiron.profiler.cpu_speed import CpuSpeed
from chiron.profiler.known_work import WORK, waiting_ms
from chiron.profiler.noop_shapes import CROWD_THREADS, crowd
from chiron.workflow.timeline import Span, Timeline

COMPUTING_MS = 10.0
ALONE_MS = COMPUTING_MS + waiting_ms(WORK.first)
NEEDED_MS = COMPUTING_MS * CROWD_THREADS


@dataclass(frozen=True)
class Answer:
    timeline: Timeline
    output: str = ""
    latency_ms: float = 0.0


@dataclass
class Deployed:
    """Processes that compute for so long, one more of them in every run; the last begins again."""

    runs: list[tuple[float, ...]]
    asked: list[str] = field(default_factory=list)

    def invoke(self, request: bytes, *, trace: bool = False) -> Answer:
        assert trace
        spans = self.runs[len(self.asked) % len(self.runs)]
        self.asked.append(request.decode())
        ran = (each for process, span_ms in enumerate(spans) for each in ran_in(process, span_ms))
        timeline = Timeline(workflow="w", source="measured", latency_ms=0.0, spans=tuple(ran))
        return Answer(timeline)


def ran_in(process: int, span_ms: float) -> list[Span]:
    """Two functions, the second of which ends last, and what is no function."""
    begin_ms = 3.0 + process
    times = [(begin_ms, begin_ms + span_ms / 2), (begin_ms + 1, begin_ms + span_ms)]
    start = Span(kind="start", wrap="w", process=process, start_ms=0.0, end_ms=999.0)
    runs = [
        Span(kind="task", wrap="w", process=process, start_ms=begin, end_ms=end)
        for begin, end in times
    ]
    return [start, *runs]


@pytest.fixture(autouse=True)
def loop(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the CPU-speed probe takes beside the runs, in turn."""
    probes_ms = [1.0]
    turns = iter(range(10_000))
    monkeypatch.setattr(
        contention_overhead,
        "with_cpu_speed",
        lambda run: (run(), CpuSpeed(probes_ms[next(turns) % len(probes_ms)], 0.0)),
    )
    return probes_ms


def timed(*crowds: tuple[float, ...], rounds: int = 8, gil: bool = True) -> list[CrowdRound]:
    alone, many = Deployed([(ALONE_MS,)]), Deployed(list(crowds))
    return [run_crowd(alone, many, gil) for _ in range(rounds)]


def overhead(*crowds: tuple[float, ...]) -> tuple[float, tuple[float, float]]:
    rounds = timed(*crowds)
    return contention_overhead.contention_overhead(rounds), contention_overhead_quartiles(rounds)


def test_the_slowest_process_is_held_against_its_functions_one_after_another() -> None:
    assert overhead((NEEDED_MS, NEEDED_MS * 1.2)) == (0.2, (0.2, 0.2))


def test_there_is_none_where_a_crowd_is_as_fast_as_can_be_or_seems_faster() -> None:
    assert overhead((NEEDED_MS, NEEDED_MS)) == (0.0, (0.0, 0.0))
    assert overhead((NEEDED_MS * 0.9, NEEDED_MS * 0.9)) == (0.0, (0.0, 0.0))


def test_threads_without_a_gil_wait_all_at_once() -> None:
    as_fast = NEEDED_MS + waiting_ms(WORK.first)
    rounds = timed((as_fast, as_fast + NEEDED_MS * 0.2), gil=False)
    assert contention_overhead.contention_overhead(rounds) == 0.2


def test_what_a_machine_was_slower_beside_the_crowd_is_no_waste(loop: list[float]) -> None:
    loop[:] = [1.0, 2.0]
    assert overhead((NEEDED_MS * 2.4, NEEDED_MS * 2)) == (0.2, (0.2, 0.2))


def a_round(factor: float, uneven: float) -> CrowdRound:
    return CrowdRound(Computing(1.0, uneven), Computing(CROWD_THREADS * factor, uneven))


def test_the_median_counts_of_the_third_that_was_steady() -> None:
    steady = [a_round(factor, 0.1) for factor in (1.1, 1.2, 9.0)]
    others = [a_round(factor, 0.5) for factor in (2.0, 3.0, 4.0, 5.0, 6.0, 7.0)]
    assert contention_overhead.contention_overhead([*others, *steady]) == 0.2


def test_the_quartiles_say_how_parts_of_the_rounds_differ() -> None:
    rounds = [a_round(factor, 0.0) for factor in (1.1, 1.2, 1.3, 1.4, 9.0)]
    assert contention_overhead_quartiles(rounds) == pytest.approx((0.2, 0.4))


def test_both_are_asked_to_work_as_often() -> None:
    alone, many = Deployed([(ALONE_MS,)]), Deployed([(1.0, 2.0)])
    for _ in range(2):
        run_crowd(alone, many)
    assert alone.asked == many.asked == [WORK.request.decode()] * 2
    crowd().plan.check_against(crowd().workflow)
