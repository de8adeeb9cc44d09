"""Whatever the deployment model and mechanism, the output is the reference executor's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pytest

from generator.generate import Sources
from generator.launcher import Deployment
from generator.reference import reference
from scheduler.schedule import schedule
from workflow.errors import ChironError
from workflow.folder import WorkflowFolder
from workflow.plan import Mechanism, Model, Plan

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MODELS = get_args(Model)
MECHANISMS = get_args(Mechanism)
MEGABYTE = 1_000_000


@dataclass
class Running:
    """A workflow, deployed by several models at once."""

    folder: WorkflowFolder
    deployments: dict[str, Deployment]
    url: str

    def expected(self, request: bytes) -> str:
        return reference(Sources.read(self.folder), request, self.url).output


def two_wraps(mechanism: Mechanism) -> Plan:
    """The small workflow on two wraps: a remote stage, a wrap's threads and further processes."""
    wraps = [
        {
            "name": "small-main",
            "cpus": 1,
            "memory_mib": 128,
            "stages": [
                {"stage": 0, "processes": [["Split it"]]},
                {"stage": 1, "processes": [["Wave"]]},
                {"stage": 2, "processes": [["M1", "M3"]]},
                {"stage": 3, "processes": [[], ["Zusammenfügen"]]},
            ],
        },
        {
            "name": "small-remote",
            "cpus": 1,
            "memory_mib": 128,
            "stages": [{"stage": 1, "processes": [["M2"]]}],
        },
    ]
    plan = {"format": 1, "workflow": "small", "model": "faastlane+", "mechanism": mechanism}
    return Plan.model_validate_json(json.dumps(plan | {"wraps": wraps, "cpus": 2}))


def plans(folder, profile_of, platform, mechanism: Mechanism) -> list[Plan]:
    workflow = folder.workflow
    found = [
        schedule(workflow, profile_of(workflow), platform, 12.0, model=model, mechanism=mechanism)
        for model in MODELS
    ]
    if workflow.name == "small":
        found[MODELS.index("faastlane+")] = two_wraps(mechanism)
    return found


@pytest.fixture(scope="module", params=MECHANISMS)
def small_running(
    request, place, write_folder, profile_of, platform, tmp_path_factory
) -> Iterator[Running]:
    folder = write_folder(tmp_path_factory.mktemp("small"))
    chosen = plans(folder, profile_of, platform, request.param)
    with place.deployed(folder, chosen) as deployments:
        by_model = dict(zip(MODELS, deployments, strict=True))
        yield Running(folder, by_model, place.gateway.url)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", ["finra", "slapp"])
def test_every_model_of_a_benchmark_answers_as_the_reference_does(
    name, mechanism, place, profile_of, platform
):
    folder = WorkflowFolder.open(BENCHMARKS / name)
    body = folder.payload()
    with place.deployed(folder, plans(folder, profile_of, platform, mechanism)) as deployments:
        expected = reference(Sources.read(folder), body, place.gateway.url).output
        answers = [deployment.invoke(body).output for deployment in deployments]
    assert [answer == expected for answer in answers] == [True] * len(MODELS)


REQUESTS = {
    "JSON": b'{"price": 1.10e5, "name": "\xc3\xa9\\u00e9"}',
    "text": "no JSON at all: ü".encode(),
    "nothing": b"",
    "numbers-that-are-no-JSON": b"NaN",
    "nested-text": b'"a \\"quoted\\" [string]"',
}


@pytest.mark.parametrize("body", REQUESTS.values(), ids=REQUESTS)
def test_the_output_is_the_same_bytes_for_every_model(body, small_running):
    expected = small_running.expected(body)
    answers = {name: d.invoke(body).output for name, d in small_running.deployments.items()}
    assert answers == dict.fromkeys(MODELS, expected)


@pytest.mark.parametrize("megabytes", [1, 5])
def test_large_payloads_arrive_whole(megabytes, small_running):
    body = json.dumps({"text": "ü€x" * (megabytes * MEGABYTE // 6)}, ensure_ascii=False).encode()
    assert len(body) >= megabytes * MEGABYTE
    expected = small_running.expected(body)
    answers = {name: d.invoke(body).output for name, d in small_running.deployments.items()}
    assert [name for name, answer in answers.items() if answer != expected] == []


@pytest.mark.parametrize("model", MODELS)
def test_a_failing_function_is_named_and_later_requests_are_right(model, small_running):
    deployment = small_running.deployments[model]
    with pytest.raises(ChironError) as failed:
        deployment.invoke(b'"boom"')
    assert failed.value.functions == ("wave",)
    assert failed.value.message.startswith("function wave failed: ")
    assert "no waves today" in failed.value.message
    assert failed.value.status == 500
    assert deployment.invoke(b"{}").output == small_running.expected(b"{}")


def test_a_trace_tells_of_every_task_once(small_running):
    for model, deployment in small_running.deployments.items():
        answer = deployment.invoke(b"{}", trace=True)
        assert answer.output == small_running.expected(b"{}")
        runs = sorted(row["task"] for row in answer.timeline if row["kind"] == "run")
        assert runs == ([] if model == "one-to-one" else list(range(6)))
