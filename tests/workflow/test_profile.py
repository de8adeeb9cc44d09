"""A function's periods cover its latency; whatever leaves a doubt is refused with its path."""

from __future__ import annotations

import math
from typing import Any

import pytest

from chiron.workflow.documents import validate
from chiron.workflow.profile import Profile
from tests.rows import each_row


def profile(*periods: tuple[float, float], latency_ms: float = 10.0, **fields: Any) -> Any:
    """A profile of one function f with periods of (start, duration)."""
    listed = [{"kind": "cpu", "start_ms": s, "duration_ms": d} for s, d in periods]
    function = {"latency_ms": latency_ms, "periods": listed, **fields}
    return {"format": 1, "workflow": "demo", "functions": {"f": function}}


@each_row(
    "document",
    [
        pytest.param(profile((0, 10)), id="one period"),
        pytest.param(profile((0, 4), (4, 0), (4, 6)), id="with an empty period"),
        pytest.param(profile((0, 3.333), (3.334, 6.666)), id="rounded to microseconds"),
        pytest.param(profile(latency_ms=0), id="no time at all"),
        pytest.param(profile((0, 3_600_000), latency_ms=3_600_000), id="an hour"),
    ],
)
def test_periods_that_cover_the_latency_are_accepted(document):
    assert "f" in validate(Profile, document, "profile").functions


PERIODS = "functions.f.periods"


@each_row(
    ("document", "path", "words"),
    [
        pytest.param(profile((0, 4), (5, 5)), PERIODS, "period 1 leaves a gap", id="gap"),
        pytest.param(profile((1, 9)), PERIODS, "period 0 leaves a gap", id="late start"),
        pytest.param(profile((0, 6), (5, 5)), PERIODS, "period 1 overlaps", id="overlap"),
        pytest.param(profile((5, 5), (0, 5)), PERIODS, "period 0", id="out of order"),
        pytest.param(profile((0, 9)), PERIODS, "periods end at 9.000 ms", id="too short"),
        pytest.param(profile((0, 11)), PERIODS, "periods end at 11.000 ms", id="too long"),
        pytest.param(profile(), PERIODS, "periods end at 0.000 ms", id="none"),
        pytest.param(
            profile((0, -1)), "functions.f.periods[0].duration_ms", "greater", id="negative"
        ),
        pytest.param(
            profile((-1, 11)), "functions.f.periods[0].start_ms", "greater", id="starts before 0"
        ),
        pytest.param(
            profile((0, math.nan)), "functions.f.periods[0].duration_ms", "finite", id="NaN"
        ),
        pytest.param(
            profile((0, math.inf)), "functions.f.periods[0].duration_ms", "", id="infinite"
        ),
        pytest.param(
            profile((0, 3_600_001), latency_ms=3_600_001), "functions.f.latency_ms", "3600000",
            id="longer than an hour",
        ),
        pytest.param(profile((0, 10), samples=0), "functions.f.samples", "", id="no samples"),
        pytest.param(profile((0, 10), memory_mib=-1), "functions.f.memory_mib", "", id="memory"),
        pytest.param(
            profile((0, 10), output_bytes=10**400), "functions.f.output_bytes", "", id="bytes"
        ),
        pytest.param(
            profile((0, 10), idle_mib=1e300), "functions.f.idle_mib", "1073741824", id="MiB"
        ),
        pytest.param(profile((0, 10), spread_ms=[1]), "functions.f.spread_ms[1]", "", id="spread"),
        pytest.param(profile((0, 10), speed=1), "functions.f.speed", "", id="unknown field"),
    ],
)  # fmt: skip
def test_refused_with_the_path_to_the_field(refused, document, path, words):
    error = refused(validate, Profile, document, "profile")
    assert (error.code, error.path) == ("bad-document", path)
    assert words in error.message


def test_an_unknown_kind_of_period_is_refused_with_the_known_ones(refused):
    document = profile((0, 10))
    document["functions"]["f"]["periods"][0]["kind"] = "sleep"
    error = refused(validate, Profile, document, "profile")
    assert error.path == "functions.f.periods[0].kind"
    assert all(kind in error.message for kind in ("cpu", "native", "block"))


def test_another_format_is_refused(refused):
    assert refused(validate, Profile, profile() | {"format": 2}, "profile").path == "format"


def test_time_is_summed_by_kind():
    document = profile((0, 2), (2, 3), (5, 5))
    document["functions"]["f"]["periods"][1]["kind"] = "block"
    function = validate(Profile, document, "profile").functions["f"]
    assert (function.time_ms("cpu"), function.time_ms("block")) == (7, 3)
    assert function.time_ms("native") == 0


def test_functions_without_a_profile_are_all_named(refused):
    known = validate(Profile, profile((0, 10)), "profile")
    known.require(["f"])
    error = refused(known.require, ["f", "g", "h"])
    assert (error.code, error.functions) == ("unknown-function", ("g", "h"))
