"""Where the time of a request goes: parts that add up."""

from __future__ import annotations

import pytest

from deployment.invoke import Timeline
from evaluation.measurements.breakdown import break_down, covered


@pytest.mark.parametrize(
    ("spans", "total"),
    [
        ([], 0),
        ([(1, 3)], 2),
        ([(1, 3), (2, 5)], 4),
        ([(1, 9), (2, 3), (4, 5)], 8),
        ([(4, 5), (1, 2)], 2),
    ],
)
def test_time_that_several_spans_cover_counts_once(spans, total):
    assert covered(spans) == total


def row(kind, start_ms, end_ms, **more):
    return {"kind": kind, "start_ms": start_ms, "end_ms": end_ms, **more}


def test_the_parts_add_up_to_the_latency():
    rows = [row("fork", 1.0, 3.0), row("run", 2.0, 6.0, delayed_ms=0.5), row("run", 8.0, 9.0)]
    found = break_down(12.0, [Timeline(1.0, rows)])
    assert (found.functions_ms, found.starting_ms) == (5.0, 1.0)
    assert found.wrap_ms == 3.0  # from its arrival at 1 to the last end at 10
    assert found.outside_ms == 3.0
    assert (found.waiting_ms, found.work_ms) == (0.5, 5.0)
    parts = (found.functions_ms, found.starting_ms, found.wrap_ms, found.outside_ms)
    assert sum(parts) == found.latency_ms == 12.0


def test_functions_that_run_at_once_in_two_sandboxes_count_once():
    both = [Timeline(begin, [row("run", 1.0, 5.0)]) for begin in (0.0, 2.0)]
    found = break_down(8.0, both)
    assert (found.functions_ms, found.work_ms) == (6.0, 8.0)


def test_a_request_without_a_timeline_is_all_outside():
    assert break_down(5.0, [Timeline(0.0, [])]).outside_ms == 5.0
