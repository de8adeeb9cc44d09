"""A flow says what runs again, and of what runs twice the first end counts."""

from __future__ import annotations

from typing import Any

import pytest

from chiron.workflow.buckets import parse_buckets
from chiron.wrap.core.buckets.flow import Flow
from chiron.wrap.core.buckets.routes import RUN_BYTES


class Values:
    def size(self, value: str) -> int:
        return len(value)

    def field(self, value: str, name: str) -> str:
        return ""

    def items(self, value: str) -> list[str]:
        return [value]


def flow(**fields: Any) -> Flow[str, str]:
    """Events go through `first` to a bucket that fires `last` with each."""
    document = {
        "entry": "events",
        "buckets": {
            "events": {"trigger": "immediate", "function": "first", "attempts": 2},
            "held": {"trigger": "immediate", "function": "last", **fields},
        },
        "functions": {"first": {"gives": "held"}},
    }
    return Flow(parse_buckets(document, "demo").buckets or {}, Values())


def test_what_runs_for_too_long_is_run_again_and_the_first_end_counts():
    running = flow(rerun_after_ms=100)
    (first,) = running.take(1, ["event"], 0.0)
    assert running.due_s == pytest.approx(0.1)
    assert running.passed(0.05) == []
    assert running.passed(0.1) == [first]
    assert running.passed(1.0) == []  # there are two attempts
    (last,) = running.ended(first.number, "given", 1.0)
    assert (last.task, last.items[0].value) == ("last", "given")
    assert running.ended(first.number, "given", 1.1) == []
    assert running.failed(first.number, 1.2) == []


def test_what_fails_is_given_up_when_no_attempt_of_it_is_left_or_runs():
    running = flow(rerun_after_ms=100)
    (first,) = running.take(1, ["event"], 0.0)
    assert running.passed(0.1) == [first]
    assert running.failed(first.number, 0.2) == []
    assert running.runs(first.number)  # the other attempt
    assert running.failed(first.number, 0.3) == []
    assert not running.runs(first.number) and running.idle and running.size == 0


def test_what_fails_fires_again_with_its_number_and_objects():
    running = flow()
    (first,) = running.take(1, ["event"], 0.0)
    assert running.failed(first.number, 0.1) == [first]
    assert running.failed(first.number, 0.2) == []
    assert not running.runs(first.number)


def test_what_runs_emit_counts_once_whichever_of_them_was_first():
    running = flow(rerun_after_ms=100)
    (first,) = running.take(1, ["event"], 0.0)
    emit = lambda place, value: running.emitted(first.number, place, "held", None, value, 0.0)  # noqa: E731
    (a,) = emit(0, "a")
    assert (a.task, a.items[0].value) == ("last", "a")
    (b,) = emit(1, "b")
    assert running.failed(first.number, 0.1) == [first]
    assert emit(0, "a") == emit(1, "b") == []
    (c,) = emit(2, "c")
    assert emit(3, None) == []  # nothing is no object, but has its place
    (d,) = emit(4, "d")
    (last,) = running.ended(first.number, "given", 0.2)
    assert emit(5, "late") == []
    numbers = [each.items[0].number for each in (a, b, c, d, last)]
    assert numbers == sorted(set(numbers))


def test_an_object_of_several_buckets_is_given_to_each_of_them():
    buckets = {
        "a": {"trigger": "immediate", "functions": ["f", "g"]},
        "b": {"trigger": "immediate", "function": "f"},
    }
    document = {"entry": ["a", "b"], "buckets": buckets}
    running = Flow[str, str](parse_buckets(document, "demo").buckets or {}, Values())
    fired = running.take(1, ["event"], 0.0)
    assert sorted(firing.task for firing in fired) == ["f", "f", "g"]
    assert len({firing.number for firing in fired}) == 3
    assert running.size == 3 * (len("event") + RUN_BYTES)
