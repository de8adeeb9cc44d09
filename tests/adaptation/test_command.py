"""The command line of `chiron watch`."""

from __future__ import annotations

import json
import os

import pytest
from click.testing import CliRunner

from chiron.adaptation.latency import GatewayMetrics
from chiron.cli.watch import command
from chiron.deployment.journal import Journal
from chiron.services import state_folder
from chiron.workflow.documents import dump
from chiron.workflow.errors import ChironError
from tests.commands import run_here


@pytest.fixture
def watch(pair, platform, tmp_path, profile_by_hand, monkeypatch):
    """Run `chiron watch` on the workflow until its first verdict."""
    monkeypatch.setattr("chiron.cli.watch.profile", lambda *_, **__: profile_by_hand())
    (tmp_path / "platform.json").write_text(dump(platform))
    known = ["--platform", str(tmp_path / "platform.json"), "-o", str(tmp_path / "out")]
    fast = ["--window", "100ms", "--windows", "1"]

    def run(*arguments):
        return CliRunner().invoke(
            command, [str(pair.path), "--slo", "5s", "--once", *known, *fast, *arguments]
        )

    return run


def test_every_event_is_a_line_of_json_on_stdout_and_kept(watch, place):
    journal = Journal(state_folder())
    before = len(journal.events_of(place.gateway.url))
    first = watch("-g", place.gateway.url, "--json")
    assert first.exit_code == 0, first.exception
    events = [json.loads(line) for line in first.stdout.splitlines()]
    told = [event["event"] for event in events if event["event"] != "step"]
    assert told == ["adapting", "planned", "checked", "switched", "removed"]
    assert place.answer() == "second first x"

    second = watch("-g", place.gateway.url, "--json")
    seen = [json.loads(line)["event"] for line in second.stdout.splitlines()]
    assert seen == ["window", "verdict"]
    kept = journal.events_of(place.gateway.url)[: -before or None]
    assert [each.event for each in reversed(kept)] == [*told, *seen]
    assert {(each.workflow, each.planner) for each in kept} == {("pair", "pgp")}


def test_events_that_cannot_be_kept_are_told_all_the_same(watch, place, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr("chiron.cli.watch.state_folder", lambda: tmp_path / "file" / "state")
    result = watch("-g", place.gateway.url)
    assert (result.exit_code, result.stdout) == (0, "")  # people read them elsewhere
    assert "adapting: profiling and planning, as it is not deployed" in result.stderr


def test_once_waits_for_no_window_where_it_sends_the_requests_itself(watch, place, monkeypatch):
    assert watch("-g", place.gateway.url).exit_code == 0

    def none(*_):
        raise ChironError("no-metrics", "there are none")

    monkeypatch.setattr(GatewayMetrics, "totals", none)
    slow = "--window", "10m", "--windows", "3", "--tolerance", "1000"
    result = watch("-g", place.gateway.url, *slow, "--json")
    assert result.exit_code == 0, result.exception
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert [event["event"] for event in events] == ["window"] * 3 + ["verdict"]
    assert "30 requests in 3 windows took" in events[-1]["message"]


def test_a_planner_without_an_entry_cannot_be_watched(watch):
    result = watch("--planner", "one-to-one")
    assert result.exit_code == 2
    assert "one-to-one has no entry" in result.stderr


def test_metrics_that_are_not_where_they_should_be_are_an_error(watch, place):
    result = watch("-g", place.gateway.url, "--metrics", f"{place.gateway.url}/healthz")
    assert isinstance(result.exception, ChironError)
    assert result.exception.code == "no-metrics"


@pytest.mark.parametrize(
    ("options", "per_s", "own"),
    [((), None, False), (("--rate", "5/s", "--percentile", "95"), 5.0, True)],
)
def test_a_percentile_counts_as_asked_for_only_if_it_is_given(
    options, per_s, own, watch, place, monkeypatch
):
    made = []

    class Recorder:
        def __init__(self, **fields):
            made.append(fields)

        def run(self, *, once):
            assert once

    monkeypatch.setattr("chiron.cli.watch.Watcher", Recorder)
    assert watch("-g", place.gateway.url, *options).exit_code == 0
    (fields,) = made
    load = fields["request"].load
    assert (load and load.per_s, fields["own_percentile"]) == (per_s, own)


def test_where_no_plan_keeps_the_slo_the_status_is_3(watch, pair, place, tmp_path):
    known = ["--platform", str(tmp_path / "platform.json"), "-o", str(tmp_path / "missed")]
    words = ["watch", str(pair.path), "--slo=1ms", "--once", "-g", place.gateway.url, *known]
    result = run_here(words, b"", dict(os.environ), tmp_path)
    assert (result.status, result.stdout) == (3, "")
    assert "no plan meets the SLO of 1 ms" in result.error()
