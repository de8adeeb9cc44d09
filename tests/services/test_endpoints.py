"""Every endpoint does what its verb does."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chiron.installation.packages import Finding
from chiron.openfaas.stack import read_stack
from chiron.pipeline.deploy import find_plan
from chiron.services import endpoints
from chiron.services.app import create_app
from chiron.services.endpoints import run_deployment
from chiron.workflow.documents import validate
from chiron.workflow.plan import Plan
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile
from tests.rows import each_row

FOUND = Finding("gateway", True, "it is there", required=False)
#: A launcher whose gateway is never called.
NOWHERE: Any = SimpleNamespace(gateway=SimpleNamespace(url="http://gateway.example"))


@pytest.fixture
def inputs(workflow, profile, platform) -> dict[str, Any]:
    return {"workflow": workflow, "profile": profile, "platform": platform}


@pytest.fixture
def plan(client, inputs) -> dict[str, Any]:
    return client.post("/scheduler/schedule", json={**inputs, "slo": "200ms"}).json


@pytest.fixture
def measuring(config, wait_until) -> Iterator[Callable[..., dict[str, Any]]]:
    """Post to services whose launcher is never used; returns the job once it has ended."""
    app = create_app(replace(config, connect=lambda: nullcontext(NOWHERE)))
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


def test_an_slo_that_cannot_be_met_is_an_answer(client, inputs):
    answer = client.post("/scheduler/schedule", json={**inputs, "slo": "1us"})

    assert answer.status_code == 200
    assert answer.json["meets_slo"] is False


def test_functions_of_other_names_are_those_that_functions_json_says(client, inputs):
    states = inputs["workflow"]["States"]
    arn = "arn:aws:lambda:eu-central-1:123456789012:function:First"
    states["First"]["Resource"] = arn
    del inputs["workflow"]["Name"]
    asked = {**inputs, "slo": "200ms", "functions": {arn: "first"}, "name": "demo"}

    plan = client.post("/scheduler/schedule", json=asked).json

    assert (plan["workflow"], plan["wraps"][0]["name"]) == ("demo", "demo-wrap1")
    asked["plan"] = plan
    del asked["slo"]
    prediction = client.post("/predictor/predict", json=asked)
    assert prediction.json == plan["predicted"]


def test_predict_gives_one_plan_the_prediction_that_the_scheduler_gave_it(client, inputs, plan):
    answer = client.post("/predictor/predict", json={**inputs, "plan": plan})

    assert answer.status_code == 200
    assert answer.json == plan["predicted"]


def test_answers_say_why_their_predictions_are_not_to_be_relied_on(client, inputs, plan):
    inputs["platform"] = {**inputs["platform"], "warnings": ["busy while it was calibrated"]}
    inputs["profile"] = {**inputs["profile"], "warnings": ["busy while it was taken"]}
    both = ["busy while it was taken", "busy while it was calibrated"]
    predicted = client.post("/predictor/predict", json={**inputs, "plan": plan}).json
    planned = client.post("/scheduler/schedule", json={**inputs, "slo": "200ms"}).json
    assert predicted["warnings"] == planned["predicted"]["warnings"] == both


def test_predict_gives_many_plans_their_predictions_in_order(client, inputs, plan):
    slow = client.post(
        "/scheduler/schedule", json={**inputs, "slo": "1s", "planner": "one-to-one"}
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


@pytest.mark.usefixtures("without_template")
def test_generate_warns_of_functions_that_disturb_each_other(client, plan):
    assert (
        "Warning"
        not in client.post("/generator/generate", json={"plan": plan, "directory": "demo"}).headers
    )
    tasks = [task for process in plan["wraps"][0]["processes"] for task in process]
    plan["wraps"][0]["processes"] = [tasks]
    rule = {"level": "process", "function": "first", "others": ["second"], "reason": 'it says "no"'}
    body = {"plan": {**plan, "apart": [rule]}, "directory": "demo"}
    answer = client.post("/generator/generate", json=body)
    assert answer.status_code == 200
    (warning,) = answer.headers.getlist("Warning")
    name = plan["wraps"][0]["name"]
    said = f'wrap {name}: first shares a process with second, although it says \\"no\\": '
    assert warning.startswith(f'199 chiron "{said}')


@pytest.mark.usefixtures("without_template")
def test_generate_takes_a_timeout_with_its_unit(client, plan, tmp_path):
    body = {"plan": plan, "directory": "demo", "timeout": "2m"}
    answer = client.post("/generator/generate", json=body)
    with tarfile.open(fileobj=io.BytesIO(answer.data)) as archive:
        archive.extractall(tmp_path / "out", filter="data")
    functions = read_stack(tmp_path / "out" / "build" / "stack.yaml", {}).functions.values()
    assert {function.environment["exec_timeout"] for function in functions} == {"122s"}

    refused = client.post("/generator/generate", json={**body, "timeout": "2"})
    assert (refused.status_code, refused.json["code"]) == (400, "bad-duration")


@pytest.mark.usefixtures("without_template")
@each_row(
    ("top", "name"),
    [
        *(("", name) for name in ("demo.tar.gz", "build.zip", "upload", "out", "archive")),
        ("demo", "archive"),
    ],
)
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


@pytest.mark.usefixtures("without_template")
def test_generate_has_wraps_use_the_servers_store(config, client, inputs, tmp_path):
    apart = {"format": 1, "isolate": {"first": "wrap"}}
    asked = {**inputs, "slo": "200ms", "path": "store", "constraints": apart}
    body = {"plan": client.post("/scheduler/schedule", json=asked).json, "directory": "demo"}
    assert client.post("/generator/generate", json=body).json["code"] == "no-store"

    client = create_app(replace(config, store="redis://store:6379")).test_client()
    answer = client.post("/generator/generate", json=body)
    with tarfile.open(fileobj=io.BytesIO(answer.data)) as archive:
        archive.extractall(tmp_path / "out", filter="data")
    functions = read_stack(tmp_path / "out" / "build" / "stack.yaml", {}).functions.values()
    assert {each.environment["chiron_store"] for each in functions} == {"redis://store:6379"}


@pytest.mark.parametrize("place", ["/scheduler/schedule", "/predictor/predict"])
def test_an_archive_is_refused_where_no_folder_is_read(client, inputs, plan, place):
    more = {"slo": "200ms"} if place == "/scheduler/schedule" else {"plan": json.dumps(plan)}
    form = {name: json.dumps(value) for name, value in inputs.items()} | more
    kind = "multipart/form-data"
    assert client.post(place, data=form, content_type=kind).status_code == 200
    answer = client.post(place, data={**form, "archive": (io.BytesIO(b"x"), "demo.zip")})
    assert (answer.status_code, answer.json["path"]) == (400, "archive")


def test_what_is_in_the_address_is_refused(client, deployment):
    assert client.get("/jobs?status=running").json["path"] == "status"
    assert client.post("/deployments?tries=1", json=deployment).json["path"] == "tries"
    assert client.get("/jobs").json["jobs"] == []


def test_a_calibration_has_no_parameters(client):
    archive = {"archive": (io.BytesIO(b"x"), "demo.zip")}
    for sent in ({"json": {"store": "redis://here"}}, {"data": archive}):
        answer = client.post("/profiler/calibrate", **sent)
        assert (answer.status_code, answer.json["code"]) == (400, "bad-request")
    assert client.post("/profiler/calibrate", json={}).status_code == 202


def test_calibrate_is_a_job_whose_result_is_the_platform(measuring, monkeypatch, platform):
    def calibrate(launcher, *, progress):
        progress("timing no-ops")
        return Platform.model_validate(platform)

    monkeypatch.setattr(endpoints, "calibrate", calibrate)

    job = measuring("/profiler/calibrate")

    assert (job["kind"], job["status"]) == ("calibrate", "done")
    assert validate(Platform, job["result"], "platform") == validate(Platform, platform, "platform")
    assert [line["line"] for line in job["progress"]] == ["timing no-ops"]


def test_profile_is_a_job_whose_result_is_the_profile(measuring, monkeypatch, profile, root):
    def measure(folder, launcher, *, progress):
        assert folder.path == root / "demo"
        return validate(Profile, profile, "profile")

    monkeypatch.setattr(endpoints, "profile", measure)
    monkeypatch.setattr(endpoints, "require_tracing", lambda variables: "strace")

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


def test_schedule_takes_what_the_verb_has_options_and_files_for(client, inputs):
    given = {
        "slo": "200ms",
        "mechanism": "auto",
        "trigger": "stage",
        "path": "gateway",
        "strategy": "latency",
        "percentile": 99.5,
        "max_functions": 1,
        "node_memory_mib": 64,
        "constraints": {"format": 1, "isolate": {"first": "wrap"}},
        "secrets": {"first": ["key"]},
    }

    plan = client.post("/scheduler/schedule", json={**inputs, **given}).json

    why = " | ".join(plan["why"])
    assert (plan["trigger"], plan["path"]) == ("stage", "gateway")
    assert len(plan["wraps"]) == 2
    assert "for 99.5 % of requests" in plan["why"][0]
    assert "2 functions to deploy, 1 allowed" in why
    assert "a node has 64" in why
    assert "constraints.json wants first in a wrap of its own" in why
    assert "secret" not in why


def test_schedule_says_what_variables_and_secrets_do_without_constraints(client, inputs):
    ask = {**inputs, "slo": "200ms"}
    shared = client.post("/scheduler/schedule", json={**ask, "secrets": {"first": ["key"]}}).json
    levels = {"first": {"LEVEL": "1"}, "second": {"LEVEL": "2"}}
    apart = client.post("/scheduler/schedule", json={**ask, "environments": levels}).json
    own = {"first": {"exec_timeout": "1s"}, "second": {"exec_timeout": "2s"}}
    together = client.post("/scheduler/schedule", json={**ask, "environments": own}).json

    assert any("gives the secret key of first" in line for line in shared["why"])
    assert any("different values of LEVEL" in line for line in apart["why"])
    assert [len(plan["wraps"]) for plan in (shared, apart, together)] == [1, 2, 1]


@each_row(
    ("field", "value", "code", "path"),
    [
        ("environments", {"third": {}}, "unknown-function", "environments"),
        ("secrets", {"third": ["key"]}, "unknown-function", "secrets"),
        ("constraints", {"format": 1, "isolate": {"third": "wrap"}}, "unknown-function", None),
        ("max_functions", 0, "bad-request", "max_functions"),
        ("strategy", "luck", "bad-request", "strategy"),
    ],
)
def test_schedule_names_what_is_wrong_with_a_choice(refused, inputs, field, value, code, path):
    body = {**inputs, "slo": "200ms", field: value}

    status, error = refused("/scheduler/schedule", json=body)

    assert 400 <= status < 500
    assert (error["code"], error["path"]) == (code, path)


def test_a_deployment_is_planned_as_chosen(monkeypatch, root, tmp_path, deployment, home):
    """What the body chooses reaches the plan, with the constraints and secrets of the folder."""
    constraints = {"format": 1, "isolate": {"first": "wrap"}}
    (root / "demo" / "constraints.json").write_text(json.dumps(constraints))
    chosen = {
        "mechanism": "pool",
        "trigger": "stage",
        "percentile": 99.5,
        "max_functions": 1,
        "node_memory_mib": 64,
    }
    lines: list[str] = []

    def deploy(request, launcher, out, progress, tries):
        plan, _ = find_plan(request, launcher, out, progress)
        lines.append(f"tries: {tries}")
        return plan

    monkeypatch.setattr(endpoints, "deploy_proven", deploy)
    params = {"folder": str(root / "demo"), "workspace": str(tmp_path)}
    plan = run_deployment({**params, "request": deployment | chosen}, NOWHERE, lines.append)

    why = " | ".join(plan["why"])
    assert [wrap["mechanism"] for wrap in plan["wraps"]] == ["pool"] * 2
    assert plan["trigger"] == "stage"
    assert "for 99.5 % of requests" in plan["why"][0]
    assert "2 functions to deploy, 1 allowed" in why and "a node has 64" in why
    assert lines == ["scheduling: pgp, pool, SLO 200 ms", "tries: 5"]

    for chosen, tries in (({"tries": 2}, 2), ({"prove": False}, None)):
        run_deployment({**params, "request": deployment | chosen}, NOWHERE, lines.append)
        assert lines[-1] == f"tries: {tries}"


def test_a_deployment_is_for_the_rate_of_its_body(monkeypatch, root, tmp_path, deployment, home):
    lines: list[str] = []

    def deploy(request, launcher, out, progress, tries):
        assert request.trial.per_s == 20
        return find_plan(request, launcher, out, progress)[0]

    monkeypatch.setattr(endpoints, "deploy_proven", deploy)
    params = {"folder": str(root / "demo"), "workspace": str(tmp_path)}
    body = deployment | {"rate": "20/s"}
    plan = run_deployment({**params, "request": body}, NOWHERE, lines.append)
    assert plan["under_load"]["load"]["per_s"] == 20
    assert lines == ["scheduling: pgp, fork, SLO 200 ms at 20/s"]


def test_a_load_is_predicted_and_planned_for_as_the_command_does(client, inputs, plan):
    asked = {**inputs, "plan": plan, "rate": "20/s", "replicas": 2}
    loaded = client.post("/predictor/predict", json=asked).json
    assert loaded["load"]["per_s"] == 20
    assert set(loaded["replicas"].values()) == {2}
    assert [each["percentile"] for each in loaded["within"]] == [50, 95, 99]
    many = {**inputs, "plans": [plan], "clients": 3}
    (each,) = client.post("/predictor/predict", json=many).json["predictions"]
    assert each["load"]["clients"] == 3

    asked = {**inputs, "slo": "200ms", "rate": "20/s"}
    planned = client.post("/scheduler/schedule", json=asked).json
    assert planned["under_load"]["load"]["per_s"] == 20
    assert planned["meets_slo"] is True


def test_health_verifies_certificates_as_jobs_do(config, monkeypatch):
    """The certificates themselves: tests/cli/test_reaching.py."""
    seen = []
    monkeypatch.setattr(
        "chiron.installation.preflight.check_gateway",
        lambda url, credentials, verify: seen.append((url, verify)) or (FOUND, None),
    )
    for verify in (True, False):
        create_app(replace(config, verify_tls=verify)).test_client().get("/healthz")
    assert seen == [(config.gateway_url, True), (config.gateway_url, False)]
