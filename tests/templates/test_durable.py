"""Whenever replicas of a wrap are lost, or stand still, windows are right."""

from __future__ import annotations

import json
from collections import Counter
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wrap.cluster.durable import DurableBuckets
from wrap.core.errors import TaskError
from wrap.dispatch.bucket_runs import BucketRuns
from wrap.net.object_store.redis import Redis
from wrap.values.value import JSON, Object

from chiron.workflow.buckets import parse_buckets

pytestmark = [pytest.mark.redis, pytest.mark.parametrize("store", ["redis"], indirect=True)]
#: Events go through `first`, which gives each twice, to windows, and what fires to `last`, of
#: which further windows go to `total`.
DECLARED = parse_buckets(
    {
        "entry": "events",
        "durable": True,
        "buckets": {
            "events": {"trigger": "immediate", "function": "first"},
            "held": {"trigger": "by-batch-size", "size": 3, "function": "last"},
            "counts": {"trigger": "by-batch-size", "size": 2, "function": "total"},
        },
        "functions": {"first": {"gives": {"each": "held"}}, "last": {"gives": "counts"}},
    },
    "test",
).buckets
REPLICAS = 3


class Replicas:
    """Replicas of a wrap in this process, each of which does a step when it is told to."""

    def __init__(self, place: Any, client: Any) -> None:
        #: What fired for each function: the number of a firing -> its objects.
        self.windows: dict[str, dict[Any, list[Any]]] = {"last": {}, "total": {}}
        #: The events that were answered, and all.
        self.acknowledged = Counter[int]()
        self.taken = 0
        self._place = place
        self._client = client
        self.all = [self._another() for _ in range(REPLICAS)]

    def _another(self) -> Any:
        redis = Redis(urlsplit(self._place.url), self._place.password)
        works, attempts = list[Any](), list[Any]()

        def run(attempt: Any) -> bool:
            attempts.append(attempt)
            return False

        class Orders(DurableBuckets):
            def _listen(self) -> None:
                """It is told what to do."""

        tasks = dict(enumerate(("first", "last", "total")))
        runtime: Any = SimpleNamespace(
            wrap=SimpleNamespace(tasks=tasks, timeouts_s={}, timeout_s=60.0),
            threads=SimpleNamespace(start=works.append),
            loop=None,
        )
        durable = Orders(redis, "test")
        durable._writes = True  # no thread begins to write
        numbers = {name: number for number, name in tasks.items()}
        stream: Any = BucketRuns(runtime, DECLARED or {}, numbers, 0.0, durable=durable)
        stream._runs.begin = run
        durable.join(stream.replica)
        return SimpleNamespace(
            stream=stream, durable=durable, works=works, attempts=attempts, redis=redis
        )

    def take(self, replica: Any, count: int) -> None:
        """A request comes with so many events."""
        events = [*range(self.taken, self.taken + count)]
        self.taken += count
        request = Object(json.dumps(events).encode(), JSON)
        replica.stream.take(request, lambda _: self.acknowledged.update(events))

    def write(self, replica: Any) -> None:
        """Its orders reach Redis."""
        replica.durable._write_all()
        replica.durable._writes = True

    def lose_answer(self, replica: Any) -> None:
        """The same, but that the first answer does not come."""
        run = replica.redis.run

        def run_in_vain(*arguments: Any) -> Any:
            run(*arguments)
            replica.redis.run = run
            raise TaskError("store", "lost")

        replica.redis.run = run_in_vain
        self.write(replica)
        replica.redis.run = run

    def run(self, replica: Any, place: int) -> bool:
        """One of its functions ends; whether one ran."""
        while replica.works:
            replica.works.pop()()
        if not replica.attempts:
            return False
        attempt = replica.attempts.pop(place % len(replica.attempts))
        firing = attempt.firing
        values = [json.loads(item.value.text()) for item in firing.items]
        if firing.task == "first":
            output: Any = [[values[0], copy] for copy in (0, 1)]
        else:
            output = len(values) if firing.task == "last" else None
            known = self.windows[firing.task].setdefault(firing.number, values)
            assert known == values, "it runs again with the same objects"
        result: Any = SimpleNamespace(output=Object(json.dumps(output).encode(), JSON))
        replica.stream.ended(attempt, [result])
        return True

    def beat(self, replica: Any) -> None:
        """It says that it is alive, and looks what there is."""
        replica.durable._beat()
        replica.durable._read_next(replica.stream.replica.term)

    def take_for_dead(self, replica: Any) -> None:
        """It has said nothing for long, as the others see it."""
        name = "chiron:test:replicas"
        self._client.zadd(name, {replica.durable._replica: 1}, xx=True)

    def kill(self, replica: Any) -> None:
        """It is no more, and another one is started."""
        self.take_for_dead(replica)
        self.all[self.all.index(replica)] = self._another()

    def leave(self, replica: Any) -> None:
        """It ends in order, and another one is started."""
        replica.stream.ready.running = 0  # what runs is given up
        replica.stream.stop(0.0)
        replica.durable._left = True
        replica.durable.leave(0.0)
        self.write(replica)
        self.all[self.all.index(replica)] = self._another()

    def settle(self) -> None:
        """All work until nothing is left, and what waits for more fires.

        What was set aside, as it was in hand when replicas were killed, is run again.
        """
        for _ in range(10_000):
            if self._client.exists("chiron:test:dead"):
                self.all[0].durable.manage_dead_letters(b"retry", [], lambda _: None)
            busy = False
            for replica in self.all:
                while self.run(replica, 0):
                    busy = True
                busy |= bool(replica.durable._waiting)
                self.beat(replica)
                self.write(replica)
                busy |= bool(replica.works or replica.attempts)
            if not busy and not self._drain():
                return
        raise AssertionError("it does not come to an end")

    def _drain(self) -> bool:
        """The evaluator has its windows fire; whether it had some."""
        (evaluator,) = [each for each in self.all if each.stream.replica.term]
        stream = evaluator.stream
        with stream.lock:
            fired = stream.flow.drain(0.0)
            stream.follow(fired)
        return bool(fired)


STEPS = st.tuples(
    st.sampled_from(
        [
            *("take", "take", "run", "run", "run", "write", "write", "write", "beat", "beat"),
            *("lose_answer", "take_for_dead", "take_for_dead", "kill", "leave"),
        ]
    ),
    st.integers(0, REPLICAS - 1),
    st.integers(1, 6),
)


@settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.lists(STEPS, min_size=30, max_size=90))
def test_nothing_is_lost_and_nothing_is_in_two_windows(emptied, monkeypatch, steps):
    redis = pytest.importorskip("redis")
    monkeypatch.setattr("wrap.cluster.durable._PAUSE_S", 0.0)
    emptied.lose_all()
    with redis.Redis.from_url(emptied.place.url, password=emptied.place.password) as client:
        replicas = Replicas(emptied.place, client)
        for step, place, number in steps:
            replica = replicas.all[place]
            if step == "take":
                replicas.take(replica, number)
            elif step == "run":
                for end in range(number):
                    replicas.run(replica, end)
            else:
                getattr(replicas, step)(replica)
        replicas.settle()
        assert not client.exists(
            *(f"chiron:test:{name}" for name in ("held", "offered", "suspects", "dead", "deaths"))
        )
        assert not client.keys("chiron:test:sessions:*")
    held = Counter(event for window in replicas.windows["last"].values() for event, _ in window)
    assert not [event for event in replicas.acknowledged if held[event] != 2]
    assert not [event for event, times in held.items() if times != 2]
    assert not [event for event, times in replicas.acknowledged.items() if times != 1]
    counted = sum(sum(window) for window in replicas.windows["total"].values())
    assert counted == sum(held.values())
