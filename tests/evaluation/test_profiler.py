"""The report on the profiler: what is compared with what."""

from __future__ import annotations

import pytest

from chiron.evaluation.profiler import KNOWN, checked
from chiron.workflow.profile import FunctionProfile, Period


def test_shares_of_a_known_function_add_up_to_all_it_does() -> None:
    for known in KNOWN.values():
        assert sum(known.truth.values()) == pytest.approx(1.0)
    assert KNOWN["mixture"].truth == {"cpu": 0.4, "block": 0.4, "native": 0.2}


def test_the_worst_share_and_the_error_of_the_latency_are_told() -> None:
    """The disk got twice as slow meanwhile, for both runs of a pair alike."""
    periods = (
        Period(kind="cpu", start_ms=0.0, duration_ms=5.0),
        Period(kind="block", start_ms=5.0, duration_ms=4.0, syscall="read"),
        Period(kind="native", start_ms=9.0, duration_ms=1.0),
    )
    mixture = FunctionProfile(latency_ms=10.0, periods=periods)
    row = checked("mixture", mixture, [(10.1, 10.0), (10.2, 10.0), (20.2, 20.0)])
    assert row.worst_points == pytest.approx(10.0)
    assert row.latency_error == pytest.approx(0.01)
    assert (row.profiled_ms, row.untraced_ms) == (10.0, 10.0)
