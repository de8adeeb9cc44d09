"""Streams of events, redundant requests and queries are measured on benchmarks of buckets."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

from chiron.evaluation.reference.sources import reference_run
from chiron.evaluation.runtime import events as measuring
from chiron.evaluation.runtime import mapreduce
from chiron.evaluation.runtime.advertising import Account, Events, Sent, Window, account, windows_in
from chiron.evaluation.runtime.costs import measure_runtime
from chiron.evaluation.runtime.deployed import BENCHMARKS
from chiron.evaluation.runtime.mapreduce import measure_mapreduce
from chiron.evaluation.runtime.query import query
from chiron.evaluation.runtime.servers import redis
from chiron.generator.generate import Sources
from chiron.workflow.folder import WorkflowFolder


@pytest.fixture
def events() -> Events:
    return Events()


def window(events: Events, *ranges: tuple[int, int], **changes: int) -> Window:
    """What `count-views` says of the views in these ranges, but for changes."""
    numbers = [n for first, last in ranges for n in range(first, last + 1) if events.campaign(n)]
    campaigns = dict[str, int]()
    for number in numbers:
        campaign = str(events.campaign(number))
        campaigns[campaign] = campaigns.get(campaign, 0) + 1
    return Window(10.0, 9.5, tuple((n, n) for n in numbers), campaigns | changes)


def views(events: Events, numbers: range) -> int:
    return sum(events.campaign(number) is not None for number in numbers)


def test_the_events_are_those_that_the_functions_take(events):
    numbers = range(290, 320)  # those of payload.json begin anew
    sources = Sources.read(WorkflowFolder.open(BENCHMARKS / "advertising"), {})
    answer = reference_run(sources, events.body(numbers, 5000), "http://127.0.0.1:9").output
    (result,) = json.loads(answer)["count-views"]
    counted = [n for first, last in result["events"] for n in range(first, last + 1)]
    assert counted == [number for number in numbers if events.campaign(number)]
    assert result["campaigns"] == window(events, (290, 319)).campaigns
    assert result["newest"] == 5000


def test_all_that_was_acknowledged_is_counted_once(events):
    sent = Sent(range(100, 200), acknowledged=[range(100, 150), range(160, 200)])
    windows = [window(events, (100, 149)), window(events, (160, 199))]
    acknowledged = views(events, range(100, 150)) + views(events, range(160, 200))
    assert account(events, sent, windows) == Account(90, acknowledged, acknowledged, 0, 0, 0)


def test_what_was_not_acknowledged_may_be_counted_or_not(events):
    sent = Sent(range(100, 200), acknowledged=[range(100, 150)])
    found = account(events, sent, [window(events, (100, 179))])
    assert found.counted == views(events, range(100, 180)) > found.acknowledged
    assert (found.lost, found.twice, found.wrong_windows) == (0, 0, 0)


def test_what_is_lost_or_counted_twice_or_wrong_is_found(events):
    sent = Sent(range(0, 100), acknowledged=[range(0, 100)])
    lost = account(events, sent, [window(events, (0, 89))])
    assert lost.lost == views(events, range(90, 100)) > 0
    twice = account(events, sent, [window(events, (0, 99)), window(events, (40, 59))])
    assert twice.twice == views(events, range(40, 60)) > 0
    campaign = next(filter(None, map(events.campaign, range(100))))
    wrong = account(events, sent, [window(events, (0, 99), **{campaign: 99})])
    assert (wrong.lost, wrong.wrong_windows) == (0, 1)


def test_a_window_that_ran_twice_is_read_once_and_by_its_first_run(tmp_path):
    said = {"campaigns": {"a": 2}, "events": [[1, 2]], "newest": 9000}
    lines = [said | {"at": 9.5}, said | {"at": 12.0}, said | {"at": 13.0, "events": [[4, 5]]}]
    (tmp_path / "views").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [each.at for each in windows_in(tmp_path / "views")] == [9.5, 13.0]
    assert windows_in(tmp_path / "none") == []


@pytest.mark.slow
@pytest.mark.redis
def test_nothing_is_lost_or_counted_twice_where_the_wrap_is_killed(launcher):
    with (
        redis() as store,
        measuring._deployed(replace(launcher, store=store), durable=True) as wrap,
    ):
        held = wrap.hold(200.0, 6.0, kill_every_s=3.0)
    names = [figure.name for figure in measuring._figures(held)]
    assert len(held.kills) == 1
    assert held.account.counted >= held.account.acknowledged > 0
    assert (held.account.lost, held.account.twice, held.account.wrong_windows) == (0, 0, 0)
    assert "from a kill until events are acknowledged again" in names


@pytest.fixture
def without_stores(monkeypatch):
    monkeypatch.setattr("chiron.evaluation.runtime.mapreduce.missing", lambda store: "make it")


SHUFFLED = [
    "from the last mapper's end to the first reducer's begin",
    "from the last mapper's result to the first reducer's data",
    "the whole request",
]


@pytest.mark.slow
def test_what_is_shuffled_is_measured_where_the_answers_are_right(launcher, without_stores):
    figures = measure_mapreduce(launcher, 1, 17.0, lambda line: None)
    jobs = ("mapreduce-sort", "mapreduce-count")
    assert [f.name for f in figures] == [f"{job}: {what}" for job in jobs for what in SHUFFLED]
    for job in (figures[:3], figures[3:]):
        begins, has, whole = (figure.median for figure in job)
        assert 0 < begins < has < whole
    assert launcher.gateway.functions() == []


def test_answers_that_are_not_of_all_parts_are_wrong():
    sort, count = mapreduce._JOBS
    ranges = [
        {"group": "0", "records": 2, "sum": 5, "first": "a", "last": "b"},
        {"group": "1", "records": 0, "sum": 0},
        {"group": "2", "records": 1, "sum": 2, "first": "c", "last": "c"},
    ]
    expected = Counter(records=3, sum=7)
    assert sort.check(ranges, expected)
    assert not sort.check(ranges[::-1], expected)
    assert not sort.check(ranges[:2], expected)
    shares = [{"group": "0", "counts": {"a": 1}}, {"group": "1", "counts": {"b": 2}}]
    assert count.check(shares, Counter(a=1, b=2))
    assert not count.check([*shares, shares[0]], Counter(a=1, b=2))
    assert count.counts(["a b", "b", "a b"]) == Counter(a=2, b=3)


@pytest.mark.slow
def test_what_passes_between_functions_of_a_query_is_within_the_request(launcher):
    names, medians = zip(
        *((f.name, f.median) for f in measure_runtime(launcher, 2, lambda line: None, [query()])),
        strict=True,
    )
    assert list(names) == [each.name for each in query().quantities]
    whole_ms, own_ms, between_ms = medians
    assert whole_ms > own_ms + between_ms > between_ms > 0
