"""What deployed workflows do, as their wraps' metrics say at looks one after another."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import cycle
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.deployment import live
from chiron.deployment.live import OVER_S, LiveMonitor, quantile
from chiron.openfaas.objects import FunctionStatus, LogLine
from chiron.workflow.errors import ChironError

ENTRY = "w-wrap1"
BOUNDS = (0.01, 0.1, 1.0)


@dataclass
class Replica:
    """A wrap's replica, and what it has counted: how long requests took, by their status."""

    name: str = "a"
    took_s: list[float] = field(default_factory=list)
    failed: int = 0
    held_bytes: int = 0
    pressed_s: float = 0.0
    events: int = 0
    buckets: dict[str, list[float]] = field(default_factory=dict)
    misfired: int = 0

    def page(self) -> str:
        counted = {
            f'chiron_replica_info{{wrap="w",replica="{self.name}"}}': 1,
            "chiron_requests_in_hand": 2,
            "chiron_requests_waiting": 1,
            "chiron_requests_at_once": 4,
            "chiron_held_bytes": self.held_bytes,
            "chiron_pressure_seconds_total": self.pressed_s,
            'http_requests_total{code="200",method="post"}': len(self.took_s),
            'http_requests_total{code="500",method="get"}': self.failed,
            'http_requests_total{code="204",method="options"}': 1000,
        }
        counted["chiron_events_total"] = self.events
        for bucket, late_s in self.buckets.items():
            counted[f'chiron_firing_failures_total{{bucket="{bucket}"}}'] = self.misfired
            for bound in (*BOUNDS, float("inf")):
                label = f'chiron_firing_delay_seconds_bucket{{bucket="{bucket}",le="{bound}"}}'
                counted[label] = sum(late <= bound for late in late_s)
        for bound in (*BOUNDS, float("inf")):
            within = sum(took <= bound for took in self.took_s)
            for code, count in (("200", within), ("500", self.failed)):
                labels = f'le="{bound}",code="{code}",method="post"'
                counted[f"http_request_duration_seconds_bucket{{{labels}}}"] = count
        counted['http_request_duration_seconds_sum{code="200",method="post"}'] = sum(self.took_s)
        return "".join(f"{name} {value}\n" for name, value in counted.items())


class Cluster:
    """A gateway whose functions' replicas answer in turn, and a clock."""

    url = "http://fake"

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.asked, self.read = 1000.0, list[str](), list[str]()
        self.statuses = dict[str, FunctionStatus]()
        self.turns = dict[str, Any]()
        self.lines = dict[str, list[LogLine]]()
        clock = SimpleNamespace(monotonic=lambda: self.now)
        monkeypatch.setattr("chiron.deployment.live.time", clock)
        monkeypatch.setattr("chiron.deployment.replicas.time", clock)

    def add(self, name: str, *replicas: Any, scaled: int | None = None, **told: str) -> None:
        count = len(replicas) if scaled is None else scaled
        named = {f"chiron.{key}": value for key, value in told.items()}
        fields = {"replicas": count, "available_replicas": count}
        self.statuses[name] = FunctionStatus(name=name, annotations=named, **fields)
        self.turns[name] = cycle(replicas)

    def functions(self) -> list[FunctionStatus]:
        """As faasd lists them."""
        return [f.model_copy(update={"available_replicas": 0}) for f in self.statuses.values()]

    def describe(self, name: str) -> FunctionStatus:
        return self.statuses[name]

    def get(self, name: str, path: str, timeout_s: float) -> Any:
        self.asked.append(name)
        answers = next(self.turns[name])
        if isinstance(answers, str):
            raise ChironError(answers, "no answer")
        return SimpleNamespace(ok=path == "/metrics", text=answers.page())

    def logs(self, name: str, tail: int) -> list[LogLine]:
        self.read.append(name)
        return self.lines.get(name, [])


@pytest.fixture
def cluster(monkeypatch):
    return Cluster(monkeypatch)


@pytest.fixture
def entry(cluster):
    """The only replica of a workflow's entry, which has answered requests before."""
    replica = Replica(took_s=[0.005] * 100)
    predicted = {"cpus": 2, "latency_ms": 40.0, "low_ms": 30.0, "high_ms": 50.0, "slo_ms": 100.0}
    told = {"workflow": "w", "planner": "pgp", "role": "entry"}
    cluster.add(ENTRY, replica, prediction=json.dumps(predicted), **told)
    return replica


@pytest.fixture
def look(cluster):
    """Takes a look, so many seconds after the last one."""
    monitor = LiveMonitor(cluster)

    def look(after_s: float = 10.0) -> live.Live:
        cluster.now += after_s
        return monitor.poll()

    return look


def test_rates_and_latencies_are_of_what_was_answered_between_looks(entry, look):
    (first,) = look().workflows
    entry.took_s += [0.05] * 18 + [0.4] * 2
    entry.failed += 5
    (second,) = look(after_s=10.0).workflows

    assert (first.requests_per_s, first.failed_per_s, first.latency) == (None, None, None)
    assert (second.requests_per_s, second.failed_per_s) == (2.5, 0.5)
    latency = second.latency
    assert latency.mean_ms == pytest.approx((18 * 50 + 2 * 400) / 20)
    assert latency.within_slo == 0.9
    assert (first.ever.met, first.ever.requests) == (100, 100)
    assert (second.ever.met, second.ever.requests) == (118, 120)
    # 10 of the 18 between 10 and 100 ms; half of the 2 between 100 and 1000 ms.
    assert latency.p50_ms == pytest.approx(10 + 90 * 10 / 18)
    assert latency.p95_ms == pytest.approx(100 + 900 * 1 / 2)


def test_buckets_have_what_they_fired_between_looks(entry, look):
    entry.buckets = {"window": [0.005] * 100}
    (first,) = look().workflows
    entry.events += 400
    entry.buckets["window"] += [0.05] * 18 + [0.4] * 2
    entry.misfired += 3
    (second,) = look(after_s=10.0).workflows

    assert (first.events_per_s, first.buckets) == (None, ())
    assert second.events_per_s == 40.0
    (bucket,) = second.buckets
    assert (bucket.bucket, bucket.firings_per_s, bucket.failed_per_s) == ("window", 2.0, 0.3)
    assert bucket.p50_ms == pytest.approx(10 + 90 * 10 / 18)
    assert bucket.p99_ms == pytest.approx(100 + 900 * 1.8 / 2)
    (third,) = look(after_s=OVER_S - 1).workflows
    (fourth,) = look(after_s=10.0).workflows
    assert third.buckets[0].firings_per_s < 1
    assert (fourth.buckets[0].firings_per_s, fourth.buckets[0].p99_ms) == (0.0, None)


def test_looks_that_are_long_ago_do_not_count(entry, look):
    look()
    entry.took_s += [0.4] * 20
    look(after_s=OVER_S / 2)
    entry.took_s += [0.05] * 20
    assert look(after_s=OVER_S / 2).workflows[0].latency.within_slo == 0.5
    assert look(after_s=OVER_S / 2).workflows[0].latency.within_slo == 1.0
    assert look(after_s=OVER_S / 2).workflows[0].latency is None
    assert look(after_s=2 * OVER_S).workflows[0].requests_per_s is None


def test_a_replica_that_was_started_anew_counts_from_nothing(entry, look):
    look()
    entry.name, entry.took_s = "b", [0.05] * 3
    assert look().workflows[0].requests_per_s is None
    entry.took_s += [0.05] * 20
    assert look().workflows[0].requests_per_s == 2.0


def test_replicas_that_were_not_heard_count_as_the_others(cluster, look):
    replicas = [Replica(name, held_bytes=100) for name in "ab"]
    cluster.add(ENTRY, *replicas, scaled=4, workflow="w", planner="pgp", role="entry")
    look()
    replicas[0].took_s = [0.05] * 10
    replicas[1].took_s = [0.05] * 30
    replicas[0].pressed_s = 5.0
    (found,) = look(after_s=10.0).workflows
    assert found.requests_per_s == 8.0
    (wrap,) = found.wraps
    assert (wrap.heard, wrap.available) == (2, 4)
    assert (wrap.load.held_bytes, wrap.load.in_hand, wrap.load.waiting) == (400, 8, 4)
    assert wrap.load.pressure == 0.25


def test_nobody_else_is_asked_and_nothing_is_started_by_that(cluster, entry, look):
    cluster.add("of-others", Replica())
    cluster.add("w-wrap2", Replica(), scaled=0, workflow="w", planner="pgp", role="wrap")
    (found,) = look().workflows
    assert set(cluster.asked) == set(cluster.read) == {ENTRY}
    assert [(wrap.function, wrap.load is None) for wrap in found.wraps] == [
        (ENTRY, False),
        ("w-wrap2", True),
    ]


@pytest.mark.parametrize("page", ["", "none {", "up 1\n", 'chiron_replica_info{wrap="w"} 1\n'])
def test_what_has_no_metrics_of_a_wrap_is_listed_all_the_same(cluster, entry, look, page):
    stranger = SimpleNamespace(page=lambda: page)
    for number in (2, 3):
        says = stranger if number == 2 else "timeout"
        cluster.add(f"w-wrap{number}", says, workflow="w", planner="pgp", role="wrap")
    look()
    entry.took_s += [0.05] * 20
    (found,) = look().workflows
    assert [wrap.heard for wrap in found.wraps] == [1, 0, 0]
    assert found.requests_per_s == 2.0


def test_a_client_that_calls_every_task_is_counted_by_nobody(cluster, look):
    cluster.add("w-one-to-one-a", Replica(), workflow="w", planner="one-to-one", role="task")
    look()
    (found,) = look().workflows
    assert (found.requests_per_s, found.latency) == (None, None)
    assert found.wraps[0].load.in_hand == 2


def test_a_log_is_read_when_more_has_failed_and_tells_of_which_execution(cluster, entry, look):
    assert look().workflows[0].failures == ()
    look()
    assert cluster.read == [ENTRY]
    entry.failed += 1
    said = "[wave 1a2b3c4d] failed with raised: ValueError: no waves"
    cluster.lines[ENTRY] = [LogLine(name=ENTRY, timestamp="2026-01-01T00:00:02Z", text=said)]
    (failure,) = look().workflows[0].failures
    assert (failure.function, failure.execution, failure.code) == ("wave", "1a2b3c4d", "raised")
    assert look().workflows[0].failures == (failure,)
    assert cluster.read == [ENTRY] * 2


def test_what_is_removed_is_gone_at_once(cluster, entry, look):
    look()
    del cluster.statuses[ENTRY]
    assert look().workflows == ()


def test_a_quantile_above_all_bounds_is_the_largest_one():
    assert quantile([(1.0, 1), (float("inf"), 4)], 0.95) == 1.0


@given(st.lists(st.floats(0, 2), min_size=1), st.floats(0.01, 1))
def test_a_quantile_is_in_the_bucket_in_which_it_would_be_counted(took, share):
    bounds = [0.25, 0.5, 1.0, 2.0, float("inf")]
    within = [(bound, sum(each <= bound for each in took)) for bound in bounds]
    found = quantile(within, share)
    exact = sorted(took)[max(0, -int(-share * len(took) // 1) - 1)]
    above = next(bound for bound in bounds if exact <= bound)
    assert ([0.0, *bounds][bounds.index(above)] <= found <= above) or share * len(took) % 1 < 1e-6
