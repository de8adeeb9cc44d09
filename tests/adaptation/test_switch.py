"""Versions are exchanged on a real gateway: without a failed request, or not at all."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from chiron.adaptation.blue_green import as_it_was
from chiron.adaptation.version import VERSION, serving
from chiron.cli.place import build_local
from chiron.generator.settings import client_timeout_s
from chiron.workflow.errors import ChironError

RIGHT = (200, "second first x")
SWITCH = ["adapting", "planned", "checked", "switched", "draining", "removed"]


def current(place):
    return serving(place.gateway, "pair", "pgp")


def test_what_is_not_deployed_is_deployed_and_then_found_to_be_in_order(watcher, place):
    watcher().run(once=True)
    assert place.answer() == RIGHT[1]
    assert place.names() == {"pair-wrap1", f"pair-wrap2-{current(place).version}"}
    assert place.kinds() == ["adapting", "planned", "checked", "switched", "removed"]

    place.events.clear()
    watcher(every_s=0.0).run(once=True)
    assert place.kinds() == ["adapting", "unchanged"]


def test_a_slower_function_is_noticed_under_load_and_switched_without_a_failed_request(
    watcher, place, knob, load
):
    settings = {"window_s": 1.0}
    knob.turn(0.05)
    watcher(**settings).run(once=True)
    old = current(place)
    place.events.clear()
    with load:
        load.await_each()
        knob.turn(0.15)
        while "adapting" not in place.kinds():
            watcher(**settings).run(once=True)
        load.await_each()
    new = current(place)
    assert load.answers == {RIGHT}
    assert place.kinds() == SWITCH
    assert new.version != old.version
    assert new.prediction.latency_ms > old.prediction.high_ms
    assert place.names() == {"pair-wrap1", f"pair-wrap2-{new.version}"}
    assert place.drains == [client_timeout_s(old.entry.env_vars)]


@pytest.mark.slow
def test_replicas_labels_annotations_and_variables_that_others_have_set_stay(
    watcher, place, knob, load
):
    knob.turn(0.05)
    watcher().run(once=True)
    noted = place.names()
    for name in noted:
        spec = as_it_was(place.gateway.describe(name))
        set_by_hand = {"labels": {**spec.labels, "team": "mine"}}
        set_by_hand["annotations"] = {**spec.annotations, "note": name}
        set_by_hand["env_vars"] = {**spec.env_vars, "note": name}
        place.gateway.deploy(spec.model_copy(update=set_by_hand))
        place.gateway.scale(name, 2)
    with load:
        load.await_each()
        knob.turn(0.15)
        while "switched" not in place.kinds()[1:]:
            watcher(window_s=1.0).run(once=True)
    assert load.answers == {RIGHT}
    functions = place.gateway.functions()
    assert [function.replicas for function in functions] == [2, 2]
    assert {function.labels["team"] for function in functions} == {"mine"}
    assert {function.annotations["note"] for function in functions} == noted
    assert {function.env_vars["note"] for function in functions} == noted


@pytest.mark.slow
@pytest.mark.parametrize("later", [("second", "third")])
def test_wraps_that_talk_directly_are_switched_without_a_failed_request(
    watcher, place, knob, load, later
):
    def calls():
        """How often the others were called through the gateway, as to ask where they are."""
        functions = place.gateway.functions()
        others = [each for each in functions if not each.name.startswith("pair-wrap1")]
        assert len(others) == len(later)
        return sum(each.invocation_count for each in others)

    watcher().run(once=True)
    place.events.clear()
    with load:
        load.await_each(20)
        before = calls()
        knob.turn(0.05)
        watcher(every_s=0.0).run(once=True)
        load.await_each(20)
        after = calls()
    assert place.kinds() == SWITCH
    assert load.answers == {(200, "third second first x")}
    assert max(before, after) < 40  # of the requests of four clients


def build_broken(stack_file: Path, handler: str) -> None:
    """Build the new version as it must not be: with `handler` for its second function."""
    for code in stack_file.parent.glob("pair-wrap2-*/functions/second/function/handler.py"):
        code.write_text(handler)
    build_local(stack_file)


@pytest.mark.parametrize(
    ("handler", "code", "ready_s"),
    [
        pytest.param(
            *("raise SystemError('no')\n\n\ndef handle(req):\n    return req\n", "not-ready", 1.0),
            marks=pytest.mark.slow,
        ),
        ("def handle(req):\n    return 'third ' + req\n", "wrong-output", 60.0),
    ],
    ids=["does not start", "answers wrongly"],
)
def test_a_broken_new_version_leaves_the_old_one_serving_and_nothing_of_itself(
    handler, code, ready_s, watcher, place, knob, load, monkeypatch
):
    watcher().run(once=True)
    monkeypatch.setattr("chiron.deployment.deploy._READY_TIMEOUT_S", ready_s)
    names, version = place.names(), current(place).version
    knob.turn(0.1)
    place.events.clear()
    with load:
        load.await_each()
        with pytest.raises(ChironError) as raised:
            watcher(build=partial(build_broken, handler=handler), every_s=0.0).run(once=True)
        load.await_each()
    assert raised.value.code == code
    assert load.answers == {RIGHT}
    assert (place.names(), current(place).version) == (names, version)
    assert "switched" not in place.kinds()


@pytest.mark.slow
def test_a_new_entry_that_does_not_get_ready_is_taken_back(watcher, place, knob, load, monkeypatch):
    """It worked beside the old one, but not in its place: so the old one is deployed again."""
    watcher().run(once=True)
    names, old = place.names(), current(place)
    knob.turn(0.1)
    place.events.clear()
    deploy = place.gateway.deploy

    def unable_to_start(spec):
        if spec.service == "pair-wrap1" and spec.annotations[VERSION] != old.version:
            spec = spec.model_copy(update={"env_vars": {**spec.env_vars, "WRAP_CPUS": "none"}})
        deploy(spec)

    monkeypatch.setattr(place.gateway, "deploy", unable_to_start)
    with load:
        load.await_each()
        with pytest.raises(ChironError) as raised:
            watcher(every_s=0.0, switch_s=1.0).run(once=True)
        load.await_each()
    assert raised.value.code == "not-switched"
    assert load.answers == {RIGHT}
    assert (place.names(), current(place).version) == (names, old.version)
    assert place.kinds()[-2:] == ["draining", "rolled-back"]


@pytest.mark.slow
def test_what_an_interrupted_watcher_left_is_removed_by_the_next(watcher, place, knob, monkeypatch):
    watcher().run(once=True)
    knob.turn(0.1)
    interrupted = watcher(every_s=0.0)

    def interrupt(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(interrupted, "wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        interrupted.run(once=True)
    assert len(place.names()) == 4  # the entry, its check, and the second wrap of both versions
    assert place.answer() == RIGHT[1]

    place.events.clear()
    watcher(windows=1).run(once=True)
    assert place.kinds()[:2] == ["draining", "removed"]
    assert place.names() == {"pair-wrap1", f"pair-wrap2-{current(place).version}"}
    assert place.answer() == RIGHT[1]
