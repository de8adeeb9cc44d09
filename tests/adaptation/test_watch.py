"""The loop: when it profiles, what it does about failures, and when it ends."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import requests

from chiron.adaptation.events import Event
from chiron.adaptation.rules import Window
from chiron.adaptation.version import serving
from chiron.generator.annotations import ASKED, PREDICTION, SOURCE
from chiron.openfaas.objects import FunctionSpec
from chiron.pipeline.deploy import deploy
from chiron.scheduler.choices import Choices
from chiron.workflow.errors import ChironError
from chiron.workflow.load import Load
from tests.adaptation.stand_ins import stand_ins


class Told:
    """Latencies as a test tells them, for as long as it does; then the watcher is interrupted."""

    def __init__(self, *windows: Window | Exception) -> None:
        self._windows = list(windows)

    def window(self, function: str, seconds: float, slo_ms: float | None) -> Window:
        if not self._windows:
            raise KeyboardInterrupt
        window = self._windows.pop(0)
        if isinstance(window, Exception):
            raise window
        return window


@pytest.fixture
def build():
    """Wraps that are told of, and seldom called."""
    return stand_ins(joined=False)


def no_profile():
    raise ChironError("no-strace", "there is no strace here", status=500)


@pytest.fixture
def watch(watcher, place):
    """Run a watcher over windows, until there are no more; the kinds of its events."""

    def run(*windows: Window | Exception, **options) -> list[str]:
        made = watcher(**options)
        made.latencies = Told(*windows)
        place.events.clear()
        with pytest.raises(KeyboardInterrupt):
            made.run()
        return [event.kind for event in place.events if event.kind != "step"]

    return run


@pytest.fixture
def deployed(watcher):
    watcher().run(once=True)


#: What clients of the workflow call.
ENTRY = "pair-wrap1"
GOOD, SLOW = Window(10, 5.0), Window(10, 900.0)
LATE = Window(100, 5.0, timed=100, late=60)


def test_what_serves_is_left_alone_unless_another_plan_is_better(watch, watcher, deployed, place):
    assert watch(GOOD, GOOD, GOOD, profile=no_profile) == ["window"] * 3
    assert watch(GOOD, every_s=3600.0) == ["window"]
    watcher(every_s=0.0).run(once=True)
    assert place.kinds() == ["adapting", "unchanged"]
    (adapting,) = (event for event in place.events if event.kind == "adapting")
    assert adapting.figures["reason"].startswith("the last profile is older than 0 s")
    # Drift that a profile does not explain is not tried again soon.
    assert watch(SLOW, SLOW, SLOW, SLOW, SLOW) == [
        *["window", "window", "adapting", "unchanged"],
        *["window", "window", "window"],
    ]

    # The mean is as predicted, and the SLO is broken.
    assert watch(LATE, LATE) == ["window", "window", "adapting", "unchanged"]
    told = [event for event in place.events if event.kind in ("window", "adapting")]
    assert told[0].message.endswith(", 60 of 100 over the SLO")
    assert (told[0].figures["timed"], told[0].figures["late"]) == (100, 60)
    assert "120 of 200 requests took longer than the SLO" in told[-1].message

    # A window of too few requests grows until there are enough.
    few = replace(SLOW, requests=4)
    kinds = watch(*[few] * 6, windows=2, fewest=10, profile=no_profile)
    assert kinds == ["window"] * 6 + ["adapting", "failed"]
    said = [event.message for event in place.events]
    assert said[0].endswith("; fewer than 10 tell nothing, so the window grows")
    assert said[2].startswith("12 requests of 3 windows in ")
    assert "tell nothing" not in said[2]
    assert said[3].startswith("4 requests in ")

    lost = ChironError("no-metrics", "no metrics", status=502)
    assert watch(GOOD, lost, SLOW, SLOW, GOOD, profile=no_profile) == [
        *["window", "failed"],
        *["window", "window", "adapting", "failed"],
        "window",
    ]
    assert place.answer() == "second first x"
    with pytest.raises(ChironError, match="strace"):
        watcher(every_s=0.0, profile=no_profile).run(once=True)  # who asked once is told

    url = f"{place.gateway.url}/system/scale-function/pair-wrap1"
    assert requests.post(url, json={"replicas": 0}, timeout=60).ok  # which is not gone
    assert watch(GOOD, profile=no_profile) == ["window"]
    assert place.gateway.describe("pair-wrap1").replicas == 0


def test_what_is_not_to_be_relied_on_is_told_with_the_plan_and_with_what_it_makes_adapt(
    watch, watcher, place
):
    made = watcher()
    doubtful = made.request.platform.model_copy(update={"warnings": ("busy when calibrated",)})
    made.request = replace(made.request, platform=doubtful)
    made.run(once=True)
    (planned,) = (event for event in place.events if event.kind == "planned")
    assert planned.message.endswith("; busy when calibrated")
    assert planned.figures["warnings"] == ("busy when calibrated",)
    (checked,) = (event for event in place.events if event.kind == "checked")
    assert 0 <= checked.figures["others"] <= 1
    watch(SLOW, SLOW, profile=no_profile)
    (adapting,) = (event for event in place.events if event.kind == "adapting")
    assert adapting.figures["reason"].endswith(
        "predicted; the prediction is unreliable: chiron list says why"
    )


def test_an_slo_that_what_serves_was_not_deployed_for_is_planned_for(watch, deployed, place):
    kinds = watch(GOOD, slo_ms=6000.0)
    assert kinds[0] == "adapting" and "switched" in kinds and kinds[-1] == "window"
    reason = "the SLO is 6000 ms, and what serves was deployed for 5000 ms"
    assert place.events[0].figures["reason"] == reason
    assert serving(place.gateway, "pair", "pgp").prediction.slo_ms == 6000
    assert watch(GOOD, slo_ms=6000.0, profile=no_profile) == ["window"]


def test_what_was_deployed_for_fewer_requests_or_a_lower_rate_is_planned_anew(watcher, place):
    def reasons(own_percentile=True, **asked):
        place.events.clear()
        made = watcher()
        choices = Choices(percentile=asked.get("percentile", 95.0))
        load = Load(per_s=asked["per_s"], requests=300) if "per_s" in asked else None
        made.request = replace(made.request, choices=choices, load=load)
        made.own_percentile, made.latencies = own_percentile, Told(*[GOOD] * 4)
        made.run(once=True)
        return [each.figures["reason"] for each in place.events if each.kind == "adapting"]

    assert reasons() == ["it is not deployed"]
    assert reasons(own_percentile=False, percentile=99.0) == []
    why = "the SLO is for 99 % of requests, and what serves was deployed for 95 %"
    assert reasons(percentile=99.0) == [why]
    assert reasons(percentile=99.0) == []
    why = "the rate is 5/s, and what serves was deployed for single requests"
    assert reasons(percentile=99.0, per_s=5.0) == [why]
    assert reasons(percentile=99.0, per_s=4.0) == []
    prediction = serving(place.gateway, "pair", "pgp").prediction
    assert (prediction.within.percentile, prediction.per_s) == (99.0, 5.0)


def test_a_kept_platform_is_used_and_looked_for_once(watcher, platform, place):
    made, asked = watcher(every_s=0.0), []

    class Kept:
        def platform(self, launcher, progress):
            asked.append(launcher)
            return platform

    made.request = replace(made.request, platform=None, platforms=Kept())
    for _ in range(2):
        made.run(once=True)
    assert asked == [made.launcher]
    assert [event.kind for event in place.events if event.kind == "adapting"] == ["adapting"] * 2


def test_what_cannot_be_deployed_the_first_time_ends_the_watch(watcher):
    with pytest.raises(ChironError, match="strace"):
        watcher(profile=no_profile).run()


def test_a_plan_for_a_rate_is_planned_anew_for_the_rate_at_which_requests_arrive(watcher, place):
    def watch(load, percentile, *windows):
        made = watcher()
        choices = Choices(planner="faastlane-t", mechanism="fork", percentile=percentile)
        made.request = replace(made.request, load=load, choices=choices)
        made.own_percentile, made.latencies = load is not None, Told(*windows)
        place.events.clear()
        made.run(once=True)
        serves = serving(place.gateway, "pair", "faastlane-t").prediction
        return serves.per_s, serves.within.percentile

    assert watch(Load(per_s=5.0, requests=300), 90.0) == (5.0, 90.0)
    more = replace(SLOW, arrived=200.0, seconds=10.0)
    assert watch(None, 95.0, more, more) == (20.0, 90.0)
    told = {event.kind: event.message for event in place.events}
    assert told["adapting"].endswith("; 20/s arrive")
    assert told["planned"].startswith("for 20/s instead of 5/s")
    assert "switched" in told


def deploy_as_the_verb_does(watcher, tmp_path):
    made = watcher()
    request = replace(made.request, profile=made.profile(), samples=1)
    deploy(request, made.launcher, tmp_path / "deployed", lambda line: None)


def test_of_what_chiron_deploy_deployed_it_is_known_whether_the_code_has_changed(
    watcher, place, pair, tmp_path
):
    deploy_as_the_verb_does(watcher, tmp_path)
    watcher(every_s=0.0).run(once=True)
    assert place.kinds() == ["adapting", "unchanged"]
    code = pair.path / "functions" / "first" / "handler.py"
    code.write_text(f"# better\n{code.read_text()}")
    watcher(every_s=0.0).run(once=True)
    assert "switched" in place.kinds()
    assert "not known to be of these functions" in str(place.events)


def test_what_says_nothing_of_its_code_is_not_taken_for_the_same(watcher, place, deployed):
    entry = next(f for f in place.gateway.functions() if f.name == ENTRY)
    told = {k: v for k, v in entry.annotations.items() if k not in (SOURCE, ASKED)}
    fields = entry.model_dump(include=set(FunctionSpec.model_fields)) | {"annotations": told}
    place.gateway.deploy(FunctionSpec(service=ENTRY, **fields))
    place.events.clear()
    watcher(every_s=0.0).run(once=True)
    assert "planned" in place.kinds()


def test_what_has_no_prediction_and_can_get_none_is_judged_by_the_slo(
    watch, watcher, place, deployed
):
    entry = next(f for f in place.gateway.functions() if f.name == ENTRY)
    told = {k: v for k, v in entry.annotations.items() if k != PREDICTION}
    fields = entry.model_dump(include=set(FunctionSpec.model_fields)) | {"annotations": told}
    place.gateway.deploy(FunctionSpec(service=ENTRY, **fields))
    kinds = watch(SLOW, SLOW, LATE, LATE, profile=no_profile)
    assert kinds == ["adapting", "unpredicted", *["window"] * 4, "adapting", "failed"]
    (lacking,) = [event for event in place.events if event.kind == "unpredicted"]
    assert lacking.message == "no prediction: there is no strace here; the SLO alone counts"
    made = watcher(profile=no_profile)
    made.latencies = Told(SLOW, SLOW)
    made.run(once=True)
    assert place.events[-1].message.startswith("nothing is predicted")


def test_a_plan_that_misses_the_slo_is_deployed_only_where_that_is_wanted(watcher, place):
    def refused():
        names = place.names()
        place.events.clear()
        made = watcher(every_s=0.0)
        made.request = replace(made.request, slo_ms=0.5)
        with pytest.raises(ChironError, match="--best-effort") as raised:
            made.run(once=True)
        assert raised.value.code == "slo-missed"
        assert (place.kinds(), place.names()) == (["adapting"], names)

    refused()
    watcher().run(once=True)
    refused()
    made = watcher(best_effort=True, every_s=0.0)
    made.request = replace(made.request, slo_ms=0.5)
    place.events.clear()
    made.run(once=True)
    assert "switched" in place.kinds()
    (planned,) = (event for event in place.events if event.kind == "planned")
    assert "does NOT meet the SLO" in planned.message


def test_an_event_is_a_line_of_json():
    at = datetime(2024, 5, 1, tzinfo=UTC).isoformat()
    line = Event("window", "no\nrequests", {"requests": 0}).as_json(at)
    assert "\n" not in line
    assert json.loads(line) == {
        "at": at,
        "event": "window",
        "message": "no\nrequests",
        "requests": 0,
    }
