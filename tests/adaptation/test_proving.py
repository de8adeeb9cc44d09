"""Plans are tried on a real gateway, with scripted latencies, until one keeps the SLO.

Most of them as stand-ins of wraps.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import chiron.adaptation.proving
import chiron.pipeline.deploy
from chiron.adaptation.proving import Behind, deploy_proven
from chiron.adaptation.residuals import FILE
from chiron.adaptation.version import serving
from chiron.cli.place import build_local
from chiron.deployment.invoke import Answer
from chiron.deployment.launcher import Launcher
from chiron.deployment.measure import Measurement
from chiron.openfaas.stack import read_stack
from chiron.pipeline.deploy import DeploymentRequest
from chiron.scheduler.choices import NO_CHOICES, Choices
from chiron.workflow.answer import ExpectedAnswer
from chiron.workflow.errors import ChironError
from chiron.workflow.load import Load
from chiron.workflow.profile import FunctionProfile, PayloadProfile, Period, Profile
from tests.adaptation.stand_ins import stand_ins

SLO_MS = 50.0
STAND_INS = stand_ins(joined=True)
ANSWER = '["a x","b x","c x"]'


def handler(name):
    return f'def handle(req):\n    return "{name} " + req\n'


@pytest.fixture
def trio(write_folder, tmp_path):
    """Three functions that run in parallel: the plan of 2 CPUs is predicted faster than of 1."""
    names = ("a", "b", "c")
    workflow = {"tasks": {name: name for name in names}, "edges": []}
    functions = {name: handler(name) for name in (*names, "helper")}
    folder = write_folder(tmp_path / "trio", workflow, functions, {})
    (folder.path / "payload.json").write_text("x")
    return folder


@pytest.fixture
def profile():
    """A profile of functions that compute for 15 ms each."""
    period = Period(kind="cpu", start_ms=0.0, duration_ms=15.0)
    function = FunctionProfile(latency_ms=15.0, periods=(period,), memory_mib=2.0)
    asked = PayloadProfile(name="payload.json", answer=ExpectedAnswer.learned(b"x", [ANSWER]))
    functions = dict.fromkeys(("a", "b", "c"), function)
    return Profile(format=1, workflow="trio", functions=functions, payloads=(asked,))


@pytest.fixture
def gateway(gateway, request):
    """The one that ends a function before it starts it anew, where a test asks for that."""
    strict = getattr(request, "param", "") == "strict"
    return request.getfixturevalue("strict")[1] if strict else gateway


@pytest.fixture
def proof(trio, profile, platform, place, tmp_path, monkeypatch):
    """Deploys with a proof in which the requests to each plan take the latencies given, in turn.

    Those of a plan take one, or those of a list, again and again.
    """

    def prove(
        *latencies_ms,
        slo_ms=SLO_MS,
        build=STAND_INS,
        load=None,
        choices=NO_CHOICES,
        late_ms=0.0,
        place_has=None,
        **asked,
    ):
        script = list(latencies_ms)

        def measure(target, checked, samples, stop_after, limit_s, per_s, *, warm_up_s):
            assert per_s == (load.per_s if load else None)
            for payload, check in checked:
                check(target.invoke(payload.content).output)
            taken = script.pop(0)
            if isinstance(taken, BaseException):
                raise taken
            turns = itertools.cycle(taken if isinstance(taken, list) else [taken])
            sent = []
            for latency_ms in itertools.islice(turns, samples):
                sent.append(latency_ms)
                if stop_after(latency_ms, late_ms):
                    break
            return Measurement.of(sent, 0.0)

        monkeypatch.setattr(chiron.pipeline.deploy, "measure", measure)
        # Nobody calls what is replaced, so that no request has to end.
        monkeypatch.setattr(chiron.adaptation.proving, "time", SimpleNamespace(sleep=float))
        request = DeploymentRequest(
            trio,
            slo_ms,
            choices,
            profile=profile,
            platform=platform.model_copy(update={"cpus": 4} | (place_has or {})),
            load=load,
        )
        lines = []
        report = deploy_proven(
            request, Launcher(place.gateway, build), tmp_path / "out", lines.append, **asked
        )
        assert script == []
        return report, lines

    return prove


def answer(place):
    return place.gateway.invoke("trio-wrap1", b"x").text


def wraps(place):
    return place.names() - {"helper"}


def cpus(report):
    return [each.cpus for each in report.tries]


def test_a_plan_that_keeps_the_slo_is_the_only_one_that_is_tried(proof, place, tmp_path):
    report, lines = proof(40.0)
    assert report.slo_met and report.plan.cpus == 1
    assert cpus(report) == [1]
    assert [each.verdict for each in report.tries] == ["kept"]
    assert wraps(place) == set(report.functions)
    assert answer(place) == ANSWER
    assert "promised: 95 % of requests within 50 ms; measured: 100 % of " in report.sentence
    assert any(line.startswith("proving: at most ") and " plans, about " in line for line in lines)
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"profile.json", "platform.json", "plan.json", "build", FILE}

    again, _ = proof(45.0)  # which replaces what serves
    assert again.slo_met and again.plan == report.plan
    assert wraps(place) == set(again.functions)
    assert serving(place.gateway, "trio", "pgp").version
    assert answer(place) == ANSWER


def test_where_the_cheapest_plan_breaks_the_slo_a_dearer_one_is_switched_to(proof, place, tmp_path):
    report, _ = proof(60.0, 45.0, build=build_local)
    assert report.slo_met
    assert [each.verdict for each in report.tries] == ["broken", "kept"]
    assert cpus(report)[0] == 1 < report.plan.cpus == cpus(report)[1]
    first, second = report.tries
    ratio = first.measured_ms / first.predicted_ms
    assert second.expected_ms == pytest.approx(second.predicted_ms * ratio, abs=0.01)

    current = serving(place.gateway, "trio", "pgp")
    assert current.prediction.cpus == report.plan.cpus and current.others == ()
    assert wraps(place) == set(report.functions)
    assert answer(place) == ANSWER
    out = tmp_path / "out"
    assert json.loads((out / "plan.json").read_text())["cpus"] == report.plan.cpus
    by_hand = read_stack(out / "build" / "stack.yaml", {}).functions
    assert set(by_hand) - {"helper"} == {wrap.name for wrap in report.plan.wraps}


def test_where_none_keeps_it_the_best_one_is_deployed_and_named_as_not_meeting(proof, place):
    report, _ = proof(65.0, 55.0, tries=2)
    assert not report.slo_met
    assert report.plan.cpus == cpus(report)[1]
    assert report.outcome.startswith("no plan was measured to keep the SLO of 50 ms (2 tried): ")
    assert report.outcome.endswith("the best one is deployed")
    assert report.sentence.startswith("asked: ")
    assert wraps(place) == set(report.functions)
    assert answer(place) == ANSWER


@pytest.mark.slow
def test_where_none_keeps_it_the_version_stays_that_served_before(proof, place):
    before, _ = proof(40.0)
    old = wraps(place)
    report, _ = proof(60.0, 55.0, tries=2)
    assert not report.slo_met and report.functions == ()
    assert "stays" in report.outcome
    assert wraps(place) == old == set(before.functions)
    assert answer(place) == ANSWER


@pytest.mark.slow
def test_functions_that_support_the_workflow_are_updated_beside_a_version_that_serves(
    proof, place, trio
):
    proof(40.0)
    (trio.path / "functions" / "helper" / "handler.py").write_text(handler("new"))
    proof(40.0)
    assert place.gateway.invoke("helper", b"x").text == "new x"


def test_a_plan_that_answers_wrongly_beside_is_told_and_what_serves_stays(proof, place):
    def build(stack_file: Path):
        if "chiron-" in str(stack_file):  # what is tried beside
            for code in stack_file.parent.glob("trio-wrap*/functions/b/function/handler.py"):
                code.write_text(handler("d"))
        STAND_INS(stack_file)

    report, _ = proof(60.0, build=build, tries=2)
    assert [each.verdict for each in report.tries] == ["broken", "failed"]
    assert "b" in report.tries[1].said
    assert report.plan.cpus == 1 and not report.slo_met
    assert wraps(place) == set(report.functions)
    assert answer(place) == ANSWER


def test_what_fails_in_the_first_plan_is_raised_and_leaves_nothing(proof, place, trio):
    (trio.path / "functions" / "b" / "handler.py").write_text(handler("d"))
    with pytest.raises(ChironError) as raised:
        proof()
    assert raised.value.code == "wrong-output"
    assert place.names() == set()


def test_an_interruption_leaves_nothing_that_was_not_there_before(proof, place):
    with pytest.raises(KeyboardInterrupt):
        proof(60.0, KeyboardInterrupt())
    assert place.names() == set()

    proof(40.0)
    old = wraps(place)
    with pytest.raises(KeyboardInterrupt):
        proof(60.0, KeyboardInterrupt())
    assert wraps(place) == old
    assert answer(place) == ANSWER


@pytest.mark.slow
@pytest.mark.parametrize("gateway", ["strict"], indirect=True)
def test_where_a_switch_would_lose_requests_the_version_that_serves_hands_them_on(proof, place):
    _, lines = proof(60.0, 45.0, build=build_local)
    assert any("nothing answers for up to" in line for line in lines)  # a plan of the same command
    before = place.gateway.describe("trio-wrap1").created_at

    report, lines = proof(45.0, build=build_local)
    assert report.slo_met
    assert not any("nothing answers" in line for line in lines)
    current = serving(place.gateway, "trio", "pgp")
    assert place.gateway.describe("trio-wrap1").created_at == before
    assert current.behind and set(report.functions) == {f.name for f in current.wraps}
    assert answer(place) == ANSWER


def test_what_is_handed_on_takes_the_call_longer():
    class Fixed:
        def invoke(self, request):
            return Answer(request.decode(), 10.0)

    assert Behind(Fixed(), 2.5).invoke(b"x") == Answer("x", 12.5)


@pytest.mark.slow
def test_what_was_measured_is_learned_from_by_the_next_search(proof, place, tmp_path):
    first, _ = proof(60.0, 45.0)
    kept = json.loads((tmp_path / "out" / FILE).read_text())
    assert [each["tried"]["verdict"] for each in kept["measured"]] == ["broken", "kept"]
    assert all(each["tried"]["requests"] >= 20 and each["at"] for each in kept["measured"])
    second, _ = proof(45.0)
    assert cpus(second) == [first.plan.cpus]

    # Another SLO and another speed of the machine, the same profile and calibration.
    third, _ = proof(45.0, slo_ms=SLO_MS + 1, place_has={"cpu_probe_ms": 2.0})
    assert cpus(third) == [first.plan.cpus]
    again = json.loads((tmp_path / "out" / FILE).read_text())
    assert len(again["measured"]) == 2  # each plan once, as it was measured last


THREADS = Choices(planner="faastlane-t")
RATE = Load(per_s=30, requests=1000)


def test_at_a_rate_the_plan_has_replicas_that_are_there_before_it_is_measured(proof, place):
    """Three functions that compute for 15 ms each in one process: one replica does 22 a second."""
    report, lines = proof(60.0, slo_ms=200.0, load=RATE, choices=THREADS)
    assert report.slo_met
    (wrap,) = report.plan.wraps
    assert wrap.replicas > 1
    assert place.gateway.describe(wrap.name).available_replicas == wrap.replicas
    (tried,) = report.tries
    assert (tried.cpus, tried.predicted_ms) == (wrap.replicas, report.plan.under_load.at(95).ms)
    assert "95 % of requests within 200 ms at 30/s; measured: 100 % of " in report.sentence
    assert report.sentence.endswith(f"at {wrap.replicas} CPUs")
    assert any("requests at 30/s to each end after" in line for line in lines)


def test_more_replicas_are_tried_where_the_rate_breaks_the_slo(proof, place):
    report, _ = proof(210.0, 90.0, slo_ms=200.0, load=RATE, choices=THREADS)
    assert [each.verdict for each in report.tries] == ["broken", "kept"]
    first, second = cpus(report)
    assert first < second == report.plan.allocated_cpus
    assert report.plan.under_load is not None
    current = serving(place.gateway, "trio", "faastlane-t")
    assert current.called.available_replicas >= 1


def test_what_a_client_measured_that_did_not_keep_the_rate_is_not_trusted(proof, place, tmp_path):
    report, lines = proof(60.0, slo_ms=200.0, load=RATE, choices=THREADS, late_ms=25.0, tries=1)
    assert not report.slo_met and report.late == report.measured.samples
    (tried,) = report.tries
    assert tried.verdict == "unsure" and "the client did not keep 30/s" in tried.said
    assert any("the client did not keep 30/s" in line for line in lines)
    assert json.loads((tmp_path / "out" / FILE).read_text())["measured"] == []

    report, lines = proof(60.0, slo_ms=200.0, load=RATE, choices=THREADS, late_ms=25.0, tries=None)
    assert not report.slo_met
    assert any(line.startswith("warning: the client did not keep 30/s") for line in lines)


def test_a_load_is_refused_before_anything_is_measured_where_no_replicas_are_chosen(proof):
    with pytest.raises(ChironError) as raised:
        proof(load=RATE, choices=Choices(strategy="latency"))
    assert raised.value.code == "only-cost"
