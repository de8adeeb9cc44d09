"""A workflow is measured on a real gateway: all variants, what they use, and after a stop."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from chiron.evaluation.bench.machine import target_of, this_machine
from chiron.evaluation.bench.settings import QUICK, Settings, open_run
from chiron.evaluation.bench.setup import Place
from chiron.evaluation.experiments.recorded import read_run
from chiron.evaluation.measurements.breakdown import BREAKDOWN
from chiron.evaluation.measurements.load import CLOSED, OPEN
from chiron.evaluation.measurements.run import measure_workflow
from chiron.evaluation.measurements.single import MEMORY, REQUESTS
from chiron.scheduler.choices import Choices
from chiron.scheduler.schedule import schedule
from chiron.workflow.answer import ExpectedAnswer
from chiron.workflow.documents import dump, write_atomically
from chiron.workflow.errors import ChironError
from chiron.workflow.profile import PayloadProfile

TINY = {"name": "tiny", "tasks": {"a": "greet", "b": "greet", "c": "greet"}, "edges": [["a", "c"]]}
GREET = {"greet": "def handle(req):\n    return req + '!'\n"}
UNSTABLE = {"greet": "import time\n\n\ndef handle(req):\n    return str(time.time_ns())\n"}
SCALE = replace(
    QUICK, requests=4, block=2, requests_s=60.0, baseline=2, clients=(2,), closed_s=0.2,
    closed_rounds=1, rates=(0.5,), open_s=0.2, most_s=0.5, memory_rounds=1, traces=2,
)  # fmt: skip
#: Enough where it is not of the variants that a test tells.
ONE = ("faastlane",)
EVERYTHING = (REQUESTS, MEMORY, CLOSED, OPEN, BREAKDOWN)


@pytest.fixture
def measure(launcher, write_folder, profile_of, platform, tmp_path, monkeypatch):
    """Measures a tiny workflow into the folder ``run``, with a profile made by hand."""
    # However slow the machine is, there is time for all rounds.
    monkeypatch.setattr("chiron.evaluation.measurements.single._REQUEST_S", 60.0)

    def go(
        measurements=EVERYTHING, functions=GREET, scale=SCALE, launcher=launcher, say=None,
        slo_ms=500.0, answers=None, second=None, planners=("one-to-one", "faastlane", "pgp"),
    ):  # fmt: skip
        out = tmp_path / "run"
        folder = write_folder(tmp_path / "tiny", TINY, functions, {})
        settings = Settings(planners=planners, mechanisms=("fork",), slo_ms=slo_ms)
        run = open_run(out, settings, this_machine(), target_of(launcher.gateway), "here")
        write_atomically(out / "platform.json", dump(platform))
        profile = out / "tiny" / "profile.json"
        taken = profile_of(folder.workflow)
        if answers:
            known = ExpectedAnswer.learned(folder.payloads()[0].content, answers)
            asked = PayloadProfile(name="payload.json", answer=known)
            taken = taken.model_copy(update={"payloads": (asked,)})
        if second:
            asked = folder.path / "payloads" / "second.json"
            asked.parent.mkdir()
            asked.write_text("second")
            known = ExpectedAnswer.learned(b"second", [second])
            payload = PayloadProfile(name="payloads/second.json", answer=known)
            taken = taken.model_copy(update={"payloads": (payload,)})
        write_atomically(profile, dump(taken))
        place = Place(launcher, platform, say or (lambda _: None))
        measure_workflow(folder, place, out / "tiny", run, scale, measurements)
        return out

    return go


def test_every_variant_is_measured_and_nothing_stays_deployed(measure, launcher):
    out = measure()
    (recorded,) = read_run(out).workflows
    requests = recorded.samples(REQUESTS)
    assert {"one-to-one", "faastlane fork"} <= set(requests)
    assert all(len(each.latencies_ms) == 2 for found in requests.values() for each in found)
    assert all(each.cpu_s >= 0 for found in requests.values() for each in found)
    memory = {label: found[0].busy_mib for label, found in recorded.samples(MEMORY).items()}
    assert memory["one-to-one"] > memory["faastlane fork"] > 5  # three sandboxes against one
    closed = recorded.samples(CLOSED)["one-to-one"][0][0]
    assert (closed.answered > 0, closed.errors) == (True, 0)
    assert closed.cpu_ms.keys() == {"sandboxes", "gateway", "client"}
    assert recorded.samples(OPEN)["faastlane fork"][0][0].latencies_ms
    for (
        trace,
        *_,
    ) in recorded.samples(BREAKDOWN).values():
        assert len(trace) == 2
        assert all(0 < each.functions_ms < each.latency_ms for each in trace)
    assert launcher.gateway.functions() == []


def test_every_payload_is_sent_and_its_answers_are_held_against_its_own(measure):
    with pytest.raises(ChironError, match=r"second!.*another.* to payloads/second\.json"):
        measure((REQUESTS,), planners=ONE, second='["another","second!!"]')


def test_a_run_that_was_stopped_goes_on_where_it_was(measure, launcher, tmp_path):
    def stop_at_the_second_round(line: str) -> None:
        if "round 2" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure((REQUESTS,), say=stop_at_the_second_round, planners=ONE)
    assert launcher.gateway.functions() == []
    journal = REQUESTS.journal(tmp_path / "run" / "tiny").path
    first = journal.read_text()
    assert first.count("\n") == 1
    measure((REQUESTS,), planners=ONE)
    assert journal.read_text().startswith(first)
    assert journal.read_text().count("\n") == 2

    said: list[str] = []  # what is measured is not measured again
    measure((REQUESTS,), say=said.append, planners=ONE)
    assert said == []


@pytest.mark.slow
def test_what_a_killed_run_has_left_is_removed(
    measure, launcher, write_folder, profile_of, platform, tmp_path
):
    folder = write_folder(tmp_path / "tiny", TINY, GREET, {})
    plan = schedule(
        folder.workflow, profile_of(folder.workflow), platform, 500.0, Choices(planner="sand")
    )
    noted = tmp_path / "run" / "tiny" / "deployed.json"
    with launcher.launch(folder.workflow, folder, plan) as left:
        assert [function.name for function in launcher.gateway.functions()] == list(left.names)
        write_atomically(noted, json.dumps(left.names))
        measure((REQUESTS,), planners=ONE)
        assert launcher.gateway.functions() == []
    assert not noted.exists()


@pytest.mark.slow
def test_answers_that_differ_are_not_measured_unless_they_are_known_to_vary(measure, launcher):
    with pytest.raises(ChironError, match="and not '0' as its function does alone"):
        measure((REQUESTS,), functions=UNSTABLE, answers=["[0, 0]"], planners=ONE)
    assert launcher.gateway.functions() == []

    measure((REQUESTS, CLOSED), functions=UNSTABLE, answers=["[0, 0]", "[1, 1]"], planners=ONE)


def test_plans_are_made_for_the_slo_that_they_are_held_against(measure):
    (recorded,) = read_run(measure((), slo_ms=None)).workflows
    setup = recorded.setup
    assert setup.slo_ms["fork"] == pytest.approx(setup.baseline_ms["fork"] + 10)
    assert setup.plans["pgp fork"].slo_ms == setup.slo_ms["fork"]
