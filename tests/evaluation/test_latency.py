"""Deployment models are measured in turn on one gateway, and compared with their predictions."""

from __future__ import annotations

import pytest

from evaluation import latency
from evaluation.latency import ModelRow, compare_models
from generator.invoke import Answer
from generator.measure import WARM_UP, Measurement
from workflow.errors import ChironError
from workflow.plan import Plan, Prediction

TINY = {"name": "tiny", "tasks": {"a": "greet", "b": "greet"}, "edges": [["a", "b"]]}
GREET = {"greet": "def handle(req):\n    return req + '!'\n"}
UNSTABLE = {"greet": "import time\n\n\ndef handle(req):\n    return str(time.time_ns())\n"}


@pytest.fixture
def compare(launcher, write_folder, profile_of, platform, tmp_path):
    """Compares models on a tiny workflow; `said` gets the progress."""

    def run(functions=GREET, models=("one-to-one", "faastlane"), slo_ms=5000.0, said=None):
        folder = write_folder(tmp_path / "tiny", TINY, functions, {})
        return compare_models(
            folder,
            launcher,
            profile_of(folder.workflow),
            platform,
            slo_ms=slo_ms,
            models=models,
            mechanism="fork",
            samples=4,
            progress=(said if said is not None else []).append,
        )

    return run


def row(predicted_ms: float | None, p50_ms: float, plan: Plan) -> ModelRow:
    prediction = predicted_ms and Prediction(
        latency_ms=predicted_ms, low_ms=predicted_ms, high_ms=predicted_ms, stages_ms=()
    )
    measured = Measurement(samples=1, p50_ms=p50_ms, p95_ms=p50_ms, low_ms=p50_ms, high_ms=p50_ms)
    return ModelRow(
        plan=plan.model_copy(update={"predicted": prediction}),
        processes=1,
        measured=measured,
        memory_mib=1.0,
        slo_met=True,
    )


def test_every_model_has_a_complete_row(compare, launcher):
    said: list[str] = []
    comparison = compare(said=said)
    assert (comparison.workflow, comparison.mechanism, comparison.slo_ms) == ("tiny", "fork", 5e3)
    one_to_one, faastlane = comparison.rows
    assert [r.plan.model for r in comparison.rows] == ["one-to-one", "faastlane"]
    assert (len(one_to_one.plan.wraps), len(faastlane.plan.wraps)) == (2, 1)
    assert (one_to_one.processes, faastlane.processes) == (2, 1)
    for found in comparison.rows:
        assert found.measured.samples == 4
        assert 0 < found.measured.low_ms <= found.measured.p50_ms <= found.measured.p95_ms
        assert found.plan.predicted.latency_ms > 0
        assert found.slo_met
    assert one_to_one.memory_mib > faastlane.memory_mib > 1  # two processes of Python against one
    assert [line for line in said if line.startswith("deploying")] == [
        "deploying one-to-one: 2 wraps",
        "deploying faastlane: 1 wraps",
    ]
    assert launcher.gateway.functions() == []


def test_an_slo_is_met_by_the_95th_percentile_alone(compare):
    assert not any(found.slo_met for found in compare(slo_ms=0.01, models=("faastlane",)).rows)


def test_an_answer_that_differs_ends_the_comparison_and_leaves_nothing(compare, launcher):
    with pytest.raises(ChironError) as wrong:
        compare(UNSTABLE)
    assert wrong.value.code == "wrong-output"
    assert launcher.gateway.functions() == []


def test_each_round_starts_with_another_model():
    order: list[str] = []

    class Named:
        def __init__(self, name: str, start_ms: float) -> None:
            self.name, self.latency_ms = name, start_ms

        def invoke(self, request: bytes) -> Answer:
            order.append(self.name)
            self.latency_ms += 1
            return Answer("right", self.latency_ms)

    deployments = [Named("a", 0), Named("b", 100), Named("c", 200)]
    found = latency._interleaved(deployments, b"", "right", 3)
    rounds = ["".join(order[i : i + 3]) for i in range(0, len(order), 3)]
    assert rounds == ["abc", "bca", "cab", "abc", "bca", "cab", "abc", "bca"]
    first = WARM_UP + 1.0  # the warm-up does not count
    assert found == [[first + n + base for n in range(3)] for base in (0, 100, 200)]


@pytest.mark.parametrize(
    ("predicted_ms", "p50_ms", "error"), [(110.0, 100.0, 0.1), (80.0, 100.0, -0.2), (50, 50, 0)]
)
def test_the_error_of_a_prediction_is_relative_to_the_measured_median(
    predicted_ms, p50_ms, error, write_folder, profile_of, platform, tmp_path
):
    workflow = write_folder(tmp_path / "tiny", TINY, GREET, {}).workflow
    plan = latency.schedule(workflow, profile_of(workflow), platform, 100.0, model="sand")
    assert row(float(predicted_ms), float(p50_ms), plan).prediction_error == pytest.approx(error)
