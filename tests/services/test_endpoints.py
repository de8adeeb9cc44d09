"""Every endpoint does what its verb does."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import profiler.service
from openfaas.stack import read_stack
from services.app import create_app
from workflow.documents import validate
from workflow.plan import Plan
from workflow.platform import Platform
from workflow.profile import Profile


@pytest.fixture
def inputs(workflow, profile, platform) -> dict[str, Any]:
    return {"workflow": workflow, "profile": profile, "platform": platform}


@pytest.fixture
def plan(client, inputs) -> dict[str, Any]:
    return client.post("/scheduler/schedule", json={**inputs, "slo": "200ms"}).json


@pytest.fixture
def measuring(config, wait_until) -> Iterator[Callable[..., dict[str, Any]]]:
    """Post to services whose launcher is never used; returns the job once it has ended."""
    app = create_app(replace(config, connect=nullcontext))
    client = app.test_client()

    def post(path: str, **body: Any) -> dict[str, Any]:
        accepted = client.post(path, **body)
        assert accepted.status_code == 202
        assert accepted.headers["Location"] == f"/jobs/{accepted.json['id']}"
        location = accepted.json["location"]
        wait_until(lambda: client.get(location).json["finished"])
        return client.get(location).json

    with app.extensions["chiron"].running():
        yield post


def test_schedule_answers_with_a_plan_that_meets_the_slo(client, inputs):
    answer = client.post("/scheduler/schedule", json={**inputs, "slo": "200ms"})

    assert answer.status_code == 200
    assert answer.json["meets_slo"] is True
    assert Plan.model_validate_json(answer.data).slo_ms == 200


def test_schedule_makes_the_plan_of_the_model_and_mechanism_that_are_named(client, inputs):
    choice = {"slo": "1s", "model": "one-to-one", "mechanism": "pool"}

    answer = client.post("/scheduler/schedule", json={**inputs, **choice}).json

    assert (answer["model"], answer["mechanism"]) == ("one-to-one", "pool")
    assert len(answer["wraps"]) == 2


def test_an_slo_that_cannot_be_met_is_an_answer(client, inputs):
    answer = client.post("/scheduler/schedule", json={**inputs, "slo": "1us"})

    assert answer.status_code == 200
    assert answer.json["meets_slo"] is False


def test_predict_gives_one_plan_the_prediction_that_the_scheduler_gave_it(client, inputs, plan):
    answer = client.post("/predictor/predict", json={**inputs, "plan": plan})

    assert answer.status_code == 200
    assert answer.json == plan["predicted"]


def test_predict_gives_many_plans_their_predictions_in_order(client, inputs, plan):
    slow = client.post(
        "/scheduler/schedule", json={**inputs, "slo": "1s", "model": "one-to-one"}
    ).json

    answer = client.post("/predictor/predict", json={**inputs, "plans": [slow, plan]})

    assert answer.json == {"predictions": [slow["predicted"], plan["predicted"]]}


def test_a_form_of_files_is_the_same_as_json(client, inputs, plan):
    form = {name: (io.BytesIO(json.dumps(value).encode()), name) for name, value in inputs.items()}

    answer = client.post("/scheduler/schedule", data={**form, "slo": "200ms"})

    assert answer.json == plan


def test_generate_answers_with_a_folder_for_faas_cli(client, plan, tmp_path):
    answer = client.post("/generator/generate", json={"plan": plan, "directory": "demo"})

    assert answer.status_code == 200
    assert answer.mimetype == "application/gzip"
    with tarfile.open(fileobj=io.BytesIO(answer.data)) as archive:
        archive.extractall(tmp_path / "out", filter="data")
        assert {member.uname for member in archive.getmembers()} == {""}
    stack = read_stack(tmp_path / "out" / "build" / "stack.yaml", {})
    assert list(stack.functions) == [wrap["name"] for wrap in plan["wraps"]]


@pytest.mark.parametrize("top", ["", "demo"])
@pytest.mark.parametrize("name", ["demo.tar.gz", "build.zip", "upload", "out", "archive"])
def test_generate_takes_an_uploaded_folder_and_keeps_nothing_of_it(
    client, plan, packed, root, config, top, name
):
    form = {
        "plan": json.dumps(plan),
        "archive": (io.BytesIO(packed(root / "demo", top)), name),
    }

    answer = client.post("/generator/generate", data=form)

    assert answer.status_code == 200
    assert not list((config.state / "jobs").glob("*"))


def test_calibrate_is_a_job_whose_result_is_the_platform(measuring, monkeypatch, platform):
    def calibrate(launcher, *, progress):
        progress("timing no-ops")
        return Platform.model_validate(platform)

    monkeypatch.setattr(profiler.service, "calibrate", calibrate)

    job = measuring("/profiler/calibrate")

    assert (job["kind"], job["status"]) == ("calibrate", "done")
    assert Platform.model_validate(job["result"]) == Platform.model_validate(platform)
    assert [line["line"] for line in job["progress"]] == ["timing no-ops"]


def test_profile_is_a_job_whose_result_is_the_profile(measuring, monkeypatch, profile, root):
    def measure(folder, launcher, *, progress):
        assert folder.path == root / "demo"
        return validate(Profile, profile, "profile")

    monkeypatch.setattr(profiler.service, "profile", measure)
    monkeypatch.setattr(profiler.service, "require_tracing", lambda variables: "strace")

    job = measuring("/profiler/profile", json={"directory": "demo"})

    assert (job["kind"], job["status"]) == ("profile", "done")
    assert validate(Profile, job["result"], "profile") == validate(Profile, profile, "profile")


def test_a_deployment_is_accepted_listed_and_located(client, profile, platform):
    body = {"directory": "demo", "slo": "200ms", "profile": profile, "platform": platform}

    accepted = client.post("/deployments", json=body)

    assert accepted.status_code == 202
    assert accepted.json["status"] == "queued"
    assert accepted.json["location"] == f"/deployments/{accepted.json['id']}"
    job = client.get(accepted.headers["Location"]).json
    assert (job["id"], job["status"], job["result"]) == (accepted.json["id"], "queued", None)
    listed = client.get("/deployments").json["deployments"]
    assert [item["id"] for item in listed] == [accepted.json["id"]]
    assert client.get("/jobs").json["jobs"] == listed


def test_a_deployment_that_fails_says_why_in_the_form_of_every_error(
    client, running, ended, profile, platform
):
    body = {"directory": "demo", "slo": "200ms", "profile": profile, "platform": platform}

    job = ended(client.post("/deployments", json=body).json["location"])

    assert job["status"] == "failed"
    assert job["error"] == {
        "code": "no-gateway",
        "message": "no gateway answers here",
        "path": None,
        "functions": [],
    }


def test_an_uploaded_workflow_stays_for_its_job(client, packed, root, config, profile):
    form = {
        "slo": "200ms",
        "samples": "3",
        "profile": json.dumps(profile),
        "archive": (io.BytesIO(packed(root / "demo")), "demo.tar.gz"),
    }

    accepted = client.post("/deployments", data=form)

    assert accepted.status_code == 202
    workspace: Path = config.state / "jobs" / accepted.json["id"]
    assert (workspace / "upload" / "demo" / "functions" / "first" / "handler.py").is_file()


def test_health_says_what_is_missing_and_the_mend(client):
    health = client.get("/healthz")

    assert health.status_code == 200
    gateway = next(f for f in health.json["findings"] if f["name"] == "gateway")
    assert (gateway["ok"], gateway["required"]) == (False, False)
    assert "chiron serve" in gateway["fix"]
    required = [finding["ok"] for finding in health.json["findings"] if finding["required"]]
    assert health.json["ok"] is all(required)
