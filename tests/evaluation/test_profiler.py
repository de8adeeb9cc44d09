"""The report on the profiler: what is compared with what."""

from __future__ import annotations

import pytest

from evaluation.known_functions import KNOWN
from evaluation.profiler import Checked, ProfilerReport


def test_shares_of_a_known_function_add_up_to_all_it_does() -> None:
    for known in KNOWN.values():
        assert sum(known.truth.values()) == pytest.approx(1.0)
    assert KNOWN["mixture"].truth == {"cpu": 0.4, "block": 0.4, "native": 0.2}


def test_the_worst_share_and_the_error_of_the_latency_are_told() -> None:
    row = Checked(
        function="mixture",
        truth={"cpu": 0.5, "block": 0.5},
        found={"cpu": 0.47, "native": 0.02, "block": 0.51, "free": 0.53},
        profiled_ms=11.0,
        untraced_ms=10.0,
        untraced_spread_ms=(9.0, 11.0),
        sources=("probe", "strace"),
    )
    assert row.worst_points == pytest.approx(3.0)
    assert row.latency_error == pytest.approx(0.1)
    report = ProfilerReport(
        seconds=1.0, functions=(row,), repeated="x", repeated_ms=(10, 10.5, 10.2)
    )
    assert report.repeated_range == pytest.approx(0.05)
