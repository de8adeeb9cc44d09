"""Where the time of a request goes: parts that add up."""

from __future__ import annotations

import pytest

from chiron.evaluation.measurements.breakdown import break_down, covered
from chiron.workflow.timeline import Span, Timeline


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


def span(kind, start_ms, end_ms, **more):
    return Span(kind=kind, start_ms=start_ms, end_ms=end_ms, wrap="w", **more)


def timeline(arrived_ms, *spans):
    """What a wrap tells that had the request then, by its own clock."""
    told = Timeline(workflow="w", source="measured", latency_ms=0.0, spans=spans)
    inside_ms = max((each.end_ms for each in spans), default=0.0)
    return told.seen_by_client(0.0, inside_ms + 2 * arrived_ms)


def test_the_parts_add_up_to_the_latency():
    spans = [
        *(span("start", 1.0, 3.0), span("task", 2.0, 6.0, wait_core_ms=0.5)),
        *(span("emit", 6.5, 7.0), span("task", 8.0, 9.0)),
    ]
    found = break_down(12.0, [timeline(1.0, *spans)])
    assert (found.functions_ms, found.starting_ms) == (5.0, 1.0)
    assert found.wrap_ms == 3.0  # from its arrival at 1 to the last end at 10
    assert found.outside_ms == 3.0
    assert (found.waiting_ms, found.work_ms) == (0.5, 5.0)
    parts = (found.functions_ms, found.starting_ms, found.wrap_ms, found.outside_ms)
    assert sum(parts) == found.latency_ms == 12.0


def test_functions_that_run_at_once_in_two_sandboxes_count_once():
    both = [timeline(begin, span("task", 1.0, 5.0)) for begin in (0.0, 2.0)]
    found = break_down(8.0, both)
    assert (found.functions_ms, found.work_ms) == (6.0, 8.0)
