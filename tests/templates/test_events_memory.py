"""What objects of buckets really take is no more than what is counted of them."""

from __future__ import annotations

import gc
import itertools
import json
import os
import subprocess
import sys
import tracemalloc
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from wrap.cluster.durable import DurableBuckets
from wrap.core.errors import TaskError
from wrap.dispatch.bucket_runs import BucketRuns
from wrap.values.quota import Quota
from wrap.values.value import JSON, Object

from chiron.workflow.buckets import parse_buckets

EVENTS = 300
#: What is measured may be above what is counted by this factor.
FACTOR = 1.0
#: What triggers remember of the last 10,000 objects, in each bucket, is not counted.
REMEMBERED = EVENTS * 300
TRIGGERS: dict[str, dict[str, Any]] = {
    "immediate": {"trigger": "immediate"},
    "by-name": {"trigger": "by-name", "names": ["a"], "name_from": "name"},
    "by-set": {"trigger": "by-set", "names": ["a", "b"], "name_from": "name"},
    "by-batch-size": {"trigger": "by-batch-size", "size": EVENTS + 1},
    "by-time": {"trigger": "by-time", "window_ms": 86_400_000},
    "redundant": {"trigger": "redundant", "k": EVENTS + 1, "n": EVENTS + 1},
    "dynamic-join": {"trigger": "dynamic-join"},
    "dynamic-group": {"trigger": "dynamic-group", "group_from": "group"},
}


def stream(held: dict[str, Any], durable: bool, most: int = 1 << 40) -> Any:
    """Buckets whose functions do not run, and whose orders are not written, unless a test does."""
    document = {
        "entry": "events",
        "durable": durable,
        "buckets": {
            "events": {"trigger": "immediate", "function": "first"},
            "held": {**held, "functions": ["last", "other"]},
        },
        "functions": {"first": {"gives": {"each": "held"}}},
    }
    workflow = parse_buckets(document, "test")
    tasks = dict(enumerate(task.name for task in workflow.tasks))
    timer = SimpleNamespace(cancel=lambda: None)
    runtime: Any = SimpleNamespace(
        wrap=SimpleNamespace(tasks=tasks, timeouts_s={}, timeout_s=60.0),
        threads=SimpleNamespace(start=lambda _: None),
        loop=SimpleNamespace(call_at=lambda *_: timer),
    )
    kept = None
    if durable:
        kept = DurableBuckets(SimpleNamespace(place="redis://test"), "test")  # type: ignore[arg-type]
        kept._writes = True  # no thread begins to write
        kept.numbers = itertools.count(1 << 60)
    numbers = {name: number for number, name in tasks.items()}
    quota = Quota(most)
    return BucketRuns(runtime, workflow.buckets or {}, numbers, 0.0, durable=kept, quota=quota)


def event(size: int, number: int) -> dict[str, Any]:
    return {"name": "a", "group": f"group-{number}", "text": "x" * size}


def run_all(held: Any, answers: Any = None) -> None:
    """All of `first` end, each with its input, or with what is given."""
    while held.ready and held.ready._waiting[0].task == "first":
        attempt = held._next()
        output = answers or Object(attempt.firing.items[0].value.data()[:])
        held.ended(attempt, [SimpleNamespace(output=output)])


def test_the_end_of_a_run_and_all_that_follows_take_the_lock_once():
    held = stream(TRIGGERS["immediate"], durable=False)
    held.take(Object(b'[{"name": "a"}]', JSON), lambda _: None)
    attempt = held._next()
    held.lock = MagicMock()

    assert held.ended(attempt, [SimpleNamespace(output=attempt.firing.items[0].value)])

    assert len(held.ready) == 2
    assert held.lock.__enter__.call_count == 1


@pytest.mark.each_once
@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("size", [0, 1000])
@pytest.mark.parametrize("trigger", TRIGGERS)
@pytest.mark.parametrize("requests", [1, EVENTS])
def test_what_is_counted_is_no_less_than_what_is_taken(trigger, size, durable, requests):
    """Measured in an interpreter of its own: what an object takes depends on its class's past."""
    case = json.dumps([trigger, size, durable, requests])
    path = os.pathsep.join(sys.path)
    command = [sys.executable, __file__, case]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, stdout=-1, check=True)
    for taken, most in json.loads(done.stdout):
        assert taken <= most


def measured(trigger: str, size: int, durable: bool, requests: int) -> list[tuple[float, float]]:
    """What events take, and the most that they may: taken in, and after the first function."""
    each = EVENTS // requests
    held = stream(TRIGGERS[trigger], durable)
    gc.collect()
    tracemalloc.start()
    begun = tracemalloc.get_traced_memory()[0]
    for at in range(0, EVENTS, each):
        body = json.dumps([event(size, number) for number in range(at, at + each)]).encode()
        held.take(Object(body, JSON), lambda _: None)
    del body
    taken = tracemalloc.get_traced_memory()[0] - begun
    found = [(taken, FACTOR * held.taken + REMEMBERED)]
    run_all(held)
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0] - begun
    return [*found, (taken, FACTOR * held.taken + 2 * REMEMBERED)]


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("body", ["[" + ",".join(["1"] * 70_000) + "]", "[" * 70_000, "1" * 2**20])
def test_refusing_a_request_takes_no_more_than_is_allowed(body, durable):
    most = 1 << 20
    held = stream(TRIGGERS["by-time"], durable, most)
    request = Object(body.encode(), JSON)
    tracemalloc.start()
    try:
        begun = tracemalloc.get_traced_memory()[0]
        try:
            held.take(request, lambda _: None)
        except TaskError as error:
            assert (error.code, error.status) == ("too-large", 413)
            assert held.taken == 0
        assert tracemalloc.get_traced_memory()[1] - begun <= 2 * most
    finally:
        tracemalloc.stop()


def test_requests_of_one_event_are_taken_until_there_is_no_memory_and_then_refused():
    most = 1 << 20
    held = stream(TRIGGERS["by-set"], False, most)
    tracemalloc.start()
    try:
        with pytest.raises(TaskError, match="send it again later") as full:
            for _ in range(most):
                held.take(Object(b"1", JSON), lambda _: None)
        assert (full.value.code, full.value.status) == ("full", 503)
        assert most / 2 < tracemalloc.get_traced_memory()[1] < most + REMEMBERED
    finally:
        tracemalloc.stop()


def test_a_function_that_gives_more_than_there_is_memory_for_has_failed():
    most = 1 << 20
    held = stream(TRIGGERS["by-time"], False, most)
    held.take(Object(b"1", JSON), lambda _: None)
    run_all(held, Object(b"[" + b"1," * 70_000 + b"1]", JSON))
    assert held.error.code == "too-large" and "first" in str(held.error)
    assert held.taken == 0


def test_a_function_that_emits_more_than_there_is_memory_for_has_failed():
    most = 1 << 20
    held = stream(TRIGGERS["by-time"], False, most)
    held.take(Object(b"1", JSON), lambda _: None)
    for _ in range(2):  # attempts
        attempt = held._next()
        for place in range(5000):
            value = Object(b"1", JSON)
            result: Any = SimpleNamespace(place=place, emitted="held", output=value, group=None)
            held.emitted(attempt, result)
        assert attempt.over
    assert held.error.code == "full"
    assert most < held.taken <= 2 * most


if __name__ == "__main__":
    print(json.dumps(measured(*json.loads(sys.argv[1]))))
