"""What waits in buckets is told of those that a time or a number fires, and of no others."""

from __future__ import annotations

import math
from typing import Any

import pytest

from chiron.predictor.waits import waits_of
from chiron.workflow.buckets import parse_buckets
from chiron.workflow.model import Task, Workflow


def buckets(**held: Any) -> Workflow:
    """Each of `held` gets what the events fire."""
    fired = {name: each | {"function": f"{name}-ed"} for name, each in held.items()}
    document = {
        "entry": "events",
        "buckets": {"events": {"trigger": "immediate", "function": "give"}, **fired},
        "functions": {"give": {"gives": list(held)}},
    }
    return parse_buckets(document, "demo")


@pytest.mark.parametrize(
    ("held", "waits_ms"),
    [
        ({"trigger": "by-time", "window_ms": 800}, (400.0, 800.0)),
        ({"trigger": "by-batch-size", "size": 5, "wait_ms": 20}, (20.0, 20.0)),
        ({"trigger": "by-batch-size", "size": 5}, (math.inf, math.inf)),
    ],
)
def test_a_bucket_waits_as_its_trigger_does(
    held: dict[str, Any], waits_ms: tuple[float, float]
) -> None:
    ((bucket, *found),) = waits_of(buckets(held=held))
    assert bucket == "held"
    assert tuple(found) == pytest.approx(waits_ms)


def test_nothing_is_told_of_other_buckets() -> None:
    within = {
        "one": {"trigger": "immediate"},
        "all": {"trigger": "dynamic-join"},
        "two": {"trigger": "redundant", "k": 2, "n": 3},
        "single": {"trigger": "by-batch-size", "size": 1},
        "own": {"trigger": "triggers.Own"},  # a user's, of which nothing is known here
    }
    assert not list(waits_of(buckets(**within)))
    assert not list(waits_of(Workflow("demo", (Task("a", "a", None),), "a")))
