"""Whenever a process is lost, what was kept of its sessions leads to the same windows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chiron.workflow.buckets import parse_buckets
from chiron.wrap.core.buckets.flow import Firing, Flow
from chiron.wrap.core.buckets.triggers import Item, Number

#: Events go through `first`, which emits each and returns it once more, to windows, and what fires
#: to `last`.
DECLARED = parse_buckets(
    {
        "entry": "events",
        "buckets": {
            "events": {"trigger": "immediate", "function": "first"},
            "held": {"trigger": "by-batch-size", "size": 3, "function": "last"},
            "counts": {"trigger": "by-batch-size", "size": 2, "function": "total"},
        },
        "functions": {"first": {"gives": {"each": "held"}}, "last": {"gives": "counts"}},
    },
    "demo",
).buckets


class Values:
    def size(self, value: str) -> int:
        return len(value)

    def field(self, value: str, name: str) -> str:
        return ""

    def items(self, value: str) -> Sequence[str]:
        found = json.loads(value)
        return list(map(json.dumps, found)) if isinstance(found, list) else [value]


class Disk:
    """What is kept, as `wrap.cluster.durable` does."""

    def __init__(self) -> None:
        self.requests: dict[int, str] = {}
        self.held: dict[tuple[str, Number], Item[str]] = {}
        self.fired: dict[Number, tuple[str, list[Item[str]]]] = {}


class Process:
    """Runs one thing after another; can be lost after each."""

    def __init__(self, disk: Disk, windows: dict[str, list[list[Any]]]) -> None:
        self.disk, self.windows = disk, windows
        self.flow = Flow[str, str](DECLARED, Values(), in_sessions=True)
        self.ready = list[Firing[str, str]]()
        held = dict(disk.held)
        for bucket, items in disk.fired.values():
            for item in items:
                del held[bucket, item.number]
            self.ready += self.flow.fired_before(bucket, items, 0.0)
        self.follow(self.flow.hold([(key[0], held[key]) for key in sorted(held)], 0.0))
        for number, request in disk.requests.items():
            self.follow(self.flow.take(number, Values().items(request), 0.0))

    def take(self, number: int, request: str) -> None:
        self.disk.requests[number] = request
        self.follow(self.flow.take(number, Values().items(request), 0.0))

    def follow(self, fired: Sequence[Firing[str, str]]) -> None:
        for firing in fired:
            if firing.begins_session:
                self.disk.fired[firing.session] = firing.bucket, list(firing.items)
            self.ready.append(firing)
        for session, given_ in self.flow.settled():
            for bucket, item in given_:
                self.disk.held[bucket, item.number] = item
            if session in self.disk.fired:
                bucket, items = self.disk.fired.pop(session)
                for item in items:
                    del self.disk.held[bucket, item.number]
            else:
                del self.disk.requests[session[0]]
            self.flow.release(given_)
            self.follow(self.flow.hold(given_, 0.0))

    def emit(self, firing: Firing[str, str]) -> None:
        if firing.task == "first":
            value = json.dumps([json.loads(firing.items[0].value), 0])
            self.follow(self.flow.emitted(firing.number, 0, "held", None, value, 0.0))

    def run(self, place: int) -> None:
        firing = self.ready.pop(place % len(self.ready))
        values = [json.loads(item.value) for item in firing.items]
        if firing.task == "first":
            self.emit(firing)
            output = json.dumps([[values[0], 1]])
        else:
            self.windows.setdefault(firing.task, []).append([list(firing.number), *values])
            output = json.dumps(len(values))
        self.follow(self.flow.ended(firing.number, output, 0.0))


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=6),
    st.lists(st.sampled_from(["crash", "take", "emit", 0, 1, 5]), max_size=40),
)
def test_nothing_is_lost_and_nothing_is_in_two_windows(requests, steps):
    disk, windows, number = Disk(), dict[str, list[list[Any]]](), 0
    process = Process(disk, windows)
    for step in steps:
        if step == "crash":
            process = Process(disk, windows)
        elif step == "take":
            if number < len(requests):
                process.take(number, json.dumps(requests[number]))
            number += 1
        elif process.ready and step == "emit":
            process.emit(process.ready[0])
        elif process.ready:
            process.run(step)
    taken = [event for request in requests[:number] for event in request]
    while process.ready or process.flow.size:
        while process.ready:
            process.run(0)
        process.follow(process.flow.drain(0.0))
    for task, fired in windows.items():
        once = {json.dumps(each) for each in fired}  # a window that was interrupted ran again
        assert len(once) == len({json.dumps(each[0]) for each in fired}), task
    held = [json.loads(each)[1:] for each in {json.dumps(each) for each in windows.get("last", [])}]
    assert Counter(event for window in held for event, _ in window) == Counter(taken * 2)
    totals = {json.dumps(each) for each in windows.get("total", [])}
    assert sum(sum(json.loads(each)[1:]) for each in totals) == 2 * len(taken)
    assert not (disk.requests or disk.held or disk.fired)
