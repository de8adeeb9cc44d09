"""Connectors call the version that serves, once: by the function that clients call."""

from __future__ import annotations

import json

import pytest

from chiron.openfaas.sharing import TRIGGERS
from tests.adaptation.stand_ins import stand_ins


def give(pair, trigger):
    """Have the first function of the workflow carry the annotations `trigger`."""
    stack = json.loads(pair.stack_file.read_text())
    stack["functions"]["first"]["annotations"] = trigger
    pair.stack_file.write_text(json.dumps(stack))


@pytest.fixture
def deployed(place, monkeypatch):
    """What was deployed under each name: whether connectors would call it."""
    found = []
    deploy = place.gateway.deploy

    def noting(spec):
        found.append((spec.service, {*TRIGGERS & spec.annotations.keys()}))
        deploy(spec)

    monkeypatch.setattr(place.gateway, "deploy", noting)
    return found


class TestExchanged:
    """The entry is deployed anew."""

    @pytest.fixture
    def build(self):
        return stand_ins(joined=False)

    def test_no_version_on_trial_is_called(self, watcher, place, knob, pair, deployed):
        give(pair, {"topic": "orders"})
        watcher().run(once=True)
        give(pair, {"topic": "bills"})
        knob.turn(0.05)
        watcher(every_s=0.0).run(once=True)
        assert {name for name, triggers in deployed if triggers} == {"pair-wrap1"}
        assert len(deployed) > 4
        assert place.gateway.describe("pair-wrap1").annotations["topic"] == "bills"


@pytest.mark.slow
class TestHandedOn:
    """The entry stays, and hands its requests on."""

    @pytest.fixture
    def gateway(self, strict):
        return strict[1]

    def test_a_successor_is_not_called_and_what_stays_is_said(
        self, watcher, place, knob, pair, deployed
    ):
        give(pair, {"topic": "orders"})
        watcher().run(once=True)
        give(pair, {"topic": "bills"})
        knob.turn(0.05)
        place.events.clear()
        watcher(every_s=0.0).run(once=True)
        assert {name for name, triggers in deployed if triggers} == {"pair-wrap1"}
        (switched,) = [event for event in place.events if event.kind == "switched"]
        assert "topic stay as they were" in switched.message
