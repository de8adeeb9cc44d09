"""Where the provider ends a function before it starts it anew, the one that clients call stays."""

from __future__ import annotations

import pytest

from chiron.adaptation.version import serving
from chiron.deployment.invoke import find_invoker
from chiron.pipeline.deploy import DeploymentRequest, deploy
from chiron.workflow.errors import ChironError
from chiron.workflow.tracing import KEY_ANNOTATION, trace_header

RIGHT = (200, "second first x")
BOUND_S = 60


@pytest.fixture
def gateway(strict):
    return strict[1]


def current(place):
    return serving(place.gateway, "pair", "pgp")


def names_of(version):
    return {"pair-wrap1", f"pair-wrap1-{version}", f"pair-wrap2-{version}"}


def switched(watcher, place, knob, seconds, **settings):
    """What serves once the second function waits for `seconds` and a watcher has looked."""
    knob.turn(seconds)
    place.events.clear()
    watcher(every_s=0.0, **settings).run(once=True)
    return current(place)


@pytest.mark.slow
def test_versions_change_under_load_without_a_failed_request(watcher, place, knob, load):
    watcher().run(once=True)
    with load:
        load.await_each()
        created = place.gateway.describe("pair-wrap1").created_at
        for seconds in (0.05, 0.1):
            now = switched(watcher, place, knob, seconds)
            assert place.kinds() == [
                "adapting", "planned", "checked", "switched", "draining", "removed",
            ]  # fmt: skip
            assert place.names() == names_of(now.version)
        load.await_each()
    assert load.answers == {RIGHT}
    assert place.gateway.describe("pair-wrap1").created_at == created

    with find_invoker(place.gateway, "pair") as invoker:
        answer = invoker.invoke(b"x", trace=True)
    assert invoker.prediction == now.prediction
    assert {span.wrap for span in answer.timeline.spans} == names_of(now.version) - {"pair-wrap1"}
    place.events.clear()
    watcher(every_s=0.0).run(once=True)  # the hop is no reason to switch
    assert place.kinds() == ["adapting", "unchanged"]


@pytest.mark.slow
def test_what_is_predicted_has_the_hop_in_it(watcher, place, knob, platform):
    watcher().run(once=True)
    direct = switched(watcher, place, knob, 0.1, allow_outage=True)
    switched(watcher, place, knob, 0.2)
    behind = switched(watcher, place, knob, 0.1)
    more_ms = behind.prediction.latency_ms - direct.prediction.latency_ms
    assert more_ms == pytest.approx(platform.rpc_ms)


@pytest.mark.slow
def test_an_entry_that_has_forgotten_it_is_told_again(watcher, place, knob):
    watcher().run(once=True)
    now = switched(watcher, place, knob, 0.05)
    key = trace_header(now.called.annotations[KEY_ANNOTATION])
    assert place.gateway.invoke("pair-wrap1", b"", key, path="/_/route").ok
    assert place.gateway.invoke("pair-wrap1", b"x").status_code == 500  # its own wraps are gone
    place.events.clear()
    watcher(windows=1).run(once=True)
    assert place.kinds() == ["switched", "verdict"]
    assert place.answer() == RIGHT[1]


@pytest.mark.slow
def test_what_is_deployed_anew_answers_itself(watcher, place, knob, tmp_path):
    """As `chiron deploy` does it, after which a watcher removes what is left."""
    watcher().run(once=True)
    switched(watcher, place, knob, 0.05)
    fresh = watcher()
    again = DeploymentRequest(
        fresh.request.folder, 5000.0, profile=fresh.profile(), platform=fresh.request.platform
    )
    deploy(again, fresh.launcher, tmp_path / "again", lambda line: None)
    assert place.names() == {"pair-wrap1", "pair-wrap2"}
    assert place.answer() == RIGHT[1]
    assert current(place).behind == ""


@pytest.mark.slow
def test_an_entry_that_was_killed_knows_it_from_its_start(strict, watcher, place, knob, kill):
    watcher().run(once=True)
    now = switched(watcher, place, knob, 0.05)
    kill("pair-wrap1")
    place.events.clear()
    watcher(windows=1).run(once=True)
    assert place.kinds()[:2] == ["gone", "repaired"]
    assert "switched" not in place.kinds()
    assert (place.answer(), current(place).entry.name) == (RIGHT[1], now.entry.name)
    assert place.names() == names_of(now.version)


@pytest.mark.slow
def test_with_an_outage_the_entry_is_deployed_again_and_it_is_said_how_long_that_takes(
    watcher, place, knob
):
    watcher().run(once=True)
    switched(watcher, place, knob, 0.05)
    now = switched(watcher, place, knob, 0.1, allow_outage=True)
    (told,) = [event for event in place.events if event.kind == "outage"]
    assert 1 <= told.figures["seconds"] < BOUND_S
    assert place.names() == {"pair-wrap1", f"pair-wrap2-{now.version}"}
    assert place.answer() == RIGHT[1]


@pytest.mark.slow
def test_an_entry_that_refuses_goes_on_as_it_was(watcher, place, knob, load, monkeypatch):
    watcher().run(once=True)
    before = place.names()
    monkeypatch.setattr("chiron.adaptation.blue_green.KEY_ANNOTATION", "none")
    with load:
        load.await_each()
        with pytest.raises(ChironError, match="--allow-outage") as raised:
            switched(watcher, place, knob, 0.05)
        load.await_each()
    assert raised.value.code == "not-switched"
    assert load.answers == {RIGHT}
    assert place.names() == before
