"""Two profiles held against each other, and one drawn."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chiron.predictor.speed import latency_at, profile_at
from chiron.profiler.compare import compare
from chiron.profiler.function_profile import at_one_speed
from chiron.workflow.chrome_trace import profile_trace
from chiron.workflow.profile import FunctionProfile, Period, Profile


def function(
    cpu: float, block: float, reference: float | None, **fields: object
) -> FunctionProfile:
    periods = (
        Period(kind="cpu", start_ms=0.0, duration_ms=cpu),
        Period(kind="block", start_ms=cpu, duration_ms=block, syscall="read"),
    )
    made = FunctionProfile(latency_ms=cpu + block, periods=periods, cpu_probe_ms=reference)
    return made.model_copy(update=fields)


def profile(**functions: FunctionProfile) -> Profile:
    return Profile(format=1, workflow="w", functions=functions)


def test_a_slower_machine_makes_computing_longer_and_waiting_not() -> None:
    assert latency_at(function(10, 20, 1.0), 1.5) == pytest.approx(35)
    assert latency_at(function(10, 20, None), 1.5) == 30


def test_a_machine_that_got_slower_is_no_change() -> None:
    changes = compare(profile(a=function(10, 20, 1.0)), profile(a=function(15, 20, 1.5))).changes
    assert changes[0].ratio == pytest.approx(1.0)


def test_what_a_function_does_differently_is_said() -> None:
    old = function(10, 20, 1.0, files_read=("/etc/hosts",))
    new = function(10, 40, 1.0, files_read=("/etc/passwd",), ports=(80,))
    (change,) = compare(profile(a=old), profile(a=new)).changes
    assert change.kinds_ms == {"cpu": 0, "native": 0, "block": 20}
    assert change.facts == ("files_read", "ports")
    assert change.ratio == pytest.approx(50 / 30)


def test_functions_that_only_one_profile_has_are_listed() -> None:
    one = function(1, 1, None)
    changes = compare(profile(gone=one), profile(added=one)).changes
    assert [(c.function, c.old_ms, c.new_ms) for c in changes] == [
        ("gone", 2, None),
        ("added", None, 2),
    ]
    assert changes[0].ratio is None


def test_a_trace_has_every_period_in_the_row_of_its_function() -> None:
    events = profile_trace(profile(a=function(1, 2, None), b=function(3, 4, None)))
    drawn = [e for e in events["traceEvents"] if e["ph"] == "X"]
    assert [(e["tid"], e["name"], e["ts"], e["dur"]) for e in drawn] == [
        (1, "cpu", 0.0, 1000.0),
        (1, "read", 1000.0, 2000.0),
        (2, "cpu", 0.0, 3000.0),
        (2, "read", 3000.0, 4000.0),
    ]
    names = [e["args"]["name"] for e in events["traceEvents"] if e["ph"] == "M"]
    assert names == ["w", "a", "b"]


def test_a_profile_at_another_speed_computes_longer_and_waits_as_long() -> None:
    before = profile(a=function(10, 20, 1.0, forked_ms=34.0, spread_ms=(27.0, 33.0)))
    after = profile_at(before, 2.0).functions["a"]
    assert [p.duration_ms for p in after.periods] == [20, 20]
    assert [p.start_ms for p in after.periods] == [0, 20]
    assert (after.latency_ms, after.forked_ms) == (40, 48)
    assert after.spread_ms == (36, 44)


def test_functions_with_each_payload_are_at_that_speed_too(
    of_payloads: Callable[..., Profile],
) -> None:
    before = of_payloads(
        small=(3.0, profile(a=function(10, 20, 1.0))), large=(1.0, profile(a=function(30, 20, 1.0)))
    )
    after = profile_at(before, 2.0)
    assert [share.profile.functions["a"].latency_ms for share in after.mix] == [40, 80]


def test_functions_that_were_profiled_at_several_speeds_are_taken_at_one() -> None:
    slow = function(30, 10, 2.0, forked_ms=46.0, spread_ms=(38.0, 42.0))
    before = {
        "a": [function(10, 20, 1.0), function(20, 0, 2.0)],
        "b": [slow],
        "c": [function(1 / 3, 0, 1.0)],
        "d": [function(7, 0, None)],
        "e": [function(1, 0, 1.0)],
    }
    after = at_one_speed(before)
    latencies_ms = {name: [each.latency_ms for each in found] for name, found in after.items()}
    assert latencies_ms == {"a": [30, 10], "b": [25], "c": [0.333], "d": [7], "e": [1]}
    (b,) = after["b"]
    assert [p.duration_ms for p in b.periods] == [15, 10]
    assert (b.cpu_probe_ms, b.forked_ms, b.spread_ms) == (1.0, 28.0, (23.75, 26.25))
    assert at_one_speed(after) == after
    assert FunctionProfile.model_validate_json(b.model_dump_json()) == b
