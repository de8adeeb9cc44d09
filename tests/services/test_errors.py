"""Whatever is wrong with a request is answered in one form that names it, and starts nothing."""

from __future__ import annotations

import io
import json
import logging

import pytest
from click.testing import CliRunner

import chiron.services.folders
from chiron.cli import deploy
from chiron.workflow.errors import ChironError
from tests.rows import each_row


@each_row("slo", ["200", "200 parsecs", "0ms", "-1s", "", "nan ms", "1e400s"])
def test_an_slo_needs_a_known_unit_and_a_positive_number(
    refused, deployment, workflow, profile, platform, slo
):
    inputs = {"workflow": workflow, "profile": profile, "platform": platform}

    for path, body in (("/deployments", deployment), ("/scheduler/schedule", inputs)):
        status, error = refused(path, json={**body, "slo": slo})
        assert (status, error["code"]) == (400, "bad-duration")
        assert error["message"].startswith("slo ")


def test_a_function_that_the_profile_lacks_is_named(refused, deployment):
    del deployment["profile"]["functions"]["second"]

    status, error = refused("/deployments", json=deployment)

    assert (status, error["code"], error["functions"]) == (400, "unknown-function", ["second"])


def test_a_machine_that_cannot_trace_refuses_to_profile(refused, deployment, monkeypatch):
    monkeypatch.setenv("PATH", "")
    del deployment["profile"]

    assert refused("/deployments", json=deployment)[1]["code"] == "no-strace"
    assert refused("/profiler/profile", json={"directory": "demo"})[1]["code"] == "no-strace"


@pytest.fixture
def link(root):
    """Links out of the root."""
    for folder in (root, root / "demo"):
        (folder / "link").symlink_to("/etc")


@pytest.mark.usefixtures("link")
@each_row("directory", ["..", "/etc", "demo/../..", "link", "\0", "x" * 5000])
def test_a_directory_stays_below_the_root(refused, deployment, directory):
    status, error = refused("/deployments", json={**deployment, "directory": directory})

    assert (status, error["code"], error["path"]) == (403, "outside-root", "directory")


@pytest.mark.usefixtures("link")
@each_row(
    ("field", "value"),
    [
        ("handler", "/etc"),
        ("handler", "../../../.."),
        ("handler", "./link"),
        ("handler", "x" * 300),
        ("handler", "\0"),
        ("environment_file", ["../../../secrets.yaml"]),
    ],
)
def test_code_that_stack_yaml_names_stays_below_the_root(refused, root, deployment, field, value):
    stack = root / "demo" / "stack.yaml"
    before = stack.read_text()
    extra = f"  thief:\n    lang: dockerfile\n    image: x\n    {field}: {json.dumps(value)}\n"
    stack.write_text(before + extra)

    status, error = refused("/deployments", json=deployment)
    stack.write_text(before)

    assert (status, error["code"]) == (403, "outside-root")
    assert (error["path"], error["functions"]) == (f"functions.thief.{field}", ["thief"])


def test_a_folder_that_is_not_there_is_named(refused, deployment):
    status, error = refused("/deployments", json={**deployment, "directory": "nowhere"})

    assert (status, error["code"], error["path"]) == (400, "missing-file", "directory")
    assert "nowhere" in error["message"]


def test_a_workflow_has_to_be_named_once(refused, deployment):
    del deployment["directory"]
    status, error = refused("/deployments", json=deployment)
    assert (status, error["code"], error["path"]) == (400, "bad-request", "directory")

    both = {"directory": "demo", "slo": "1s", "archive": (io.BytesIO(b"x"), "a.zip")}
    both["profile"] = json.dumps(deployment["profile"])
    status, error = refused("/deployments", data=both)
    assert (status, error["code"], error["path"]) == (400, "bad-request", "directory")


@each_row("path", ["/jobs/", "/deployments/"])
@each_row("job", ["0123456789abcdef", "%00", "'; DROP TABLE jobs; --"])
def test_a_job_that_there_is_not_is_not_found(client, path, job):
    answer = client.get(path + job)

    assert (answer.status_code, answer.json["code"]) == (404, "not-found")


def test_a_deployment_is_not_found_under_the_id_of_another_job(client):
    job = client.post("/profiler/calibrate").json["id"]

    assert client.get(f"/jobs/{job}").status_code == 200
    assert client.get(f"/deployments/{job}").status_code == 404


def test_an_unknown_endpoint_or_method_is_answered_in_the_form_of_errors(client):
    for method, path, status in (("GET", "/nowhere", 404), ("DELETE", "/deployments", 405)):
        answer = client.open(path, method=method)
        assert answer.status_code == status
        assert set(answer.json) == {"code", "message", "path", "functions"}
    assert {"GET", "POST"} <= set(answer.headers["Allow"].split(", "))


def test_web_pages_of_other_sites_are_refused(client):
    foreign = client.post("/profiler/calibrate", headers={"Origin": "http://elsewhere.example"})
    rebound = client.post("/profiler/calibrate", headers={"Host": "elsewhere.example"})

    assert (foreign.status_code, foreign.json["code"]) == (403, "cross-origin")
    assert (rebound.status_code, rebound.json["code"]) == (403, "unknown-host")
    assert client.get("/jobs").json["jobs"] == []


@each_row("host", ["localhost", "127.0.0.2:20230", "[::1]:20230"])
def test_the_services_own_page_may_use_them(client, host):
    own = {"Origin": f"http://{host}", "Host": host}

    assert client.post("/profiler/calibrate", headers=own).status_code == 202


def test_what_a_gateway_posts_for_a_caller_of_its_functions_is_refused(client):
    delivered = {"X-Function-Name": "echo", "X-Function-Status": "200"}

    answer = client.post("/profiler/calibrate", headers=delivered)

    assert (answer.status_code, answer.json["code"]) == (403, "callback")


def test_a_fault_of_the_service_is_logged_and_not_shown(client, deployment, monkeypatch, caplog):
    def fail(*_):
        raise ZeroDivisionError("a secret of the implementation")

    monkeypatch.setattr(chiron.services.folders.Sources, "read", fail)
    with caplog.at_level(logging.ERROR):
        answer = client.post("/deployments", json=deployment)

    assert (answer.status_code, answer.json["code"]) == (500, "internal")
    assert "secret" not in answer.text
    assert "a secret of the implementation" in caplog.text


@pytest.mark.parametrize("uploaded", [False, True])
def test_an_error_has_no_path_of_the_server(refused, packed, root, config, deployment, uploaded):
    (root / "demo" / "functions" / "first" / "handler.py").unlink()
    archive = {"archive": (io.BytesIO(packed(root / "demo")), "demo.tar.gz"), "slo": "1s"}
    form = {"profile": json.dumps(deployment["profile"]), **archive}
    body = {"data": form} if uploaded else {"json": deployment}

    _, error = refused("/deployments", **body)

    assert "missing at demo/functions/first" in error["message"]
    assert str(root) not in error["message"] and str(config.state) not in error["message"]


def test_an_upload_that_is_refused_leaves_nothing(client, packed, root, config, deployment):
    form = {"slo": "fast", "archive": (io.BytesIO(packed(root / "demo")), "demo.tar.gz")}
    form["profile"] = json.dumps(deployment["profile"])
    assert client.post("/deployments", data=form).json["code"] == "bad-duration"

    (root / "demo" / "workflow.json").write_text("{}")
    form |= {"slo": "1s", "archive": (io.BytesIO(packed(root / "demo")), "demo.tar.gz")}
    assert client.post("/deployments", data=form).json["code"] == "bad-document"

    assert not list((config.state / "jobs").glob("*"))


def test_an_uploaded_stack_gets_none_of_the_servers_variables(
    client, packed, root, deployment, monkeypatch
):
    monkeypatch.setenv("PASSWORD_OF_THE_SERVER", "hunter2")
    stack = root / "demo" / "stack.yaml"
    extra = '    environment:\n      STOLEN: "${PASSWORD_OF_THE_SERVER}"\n'
    stack.write_text(stack.read_text() + extra)
    form = {"slo": "1s", "archive": (io.BytesIO(packed(root / "demo")), "demo.tar.gz")}
    form["profile"] = json.dumps(deployment["profile"])

    answer = client.post("/deployments", data=form)

    assert (answer.status_code, answer.json["code"]) == (400, "bad-substitution")
    assert client.post("/deployments", json=deployment).status_code == 202


def test_the_gateways_errors_keep_their_status(client, deployment, monkeypatch):
    def fail(*_):
        raise ChironError("no-gateway", "no gateway answers", status=502)

    monkeypatch.setattr(chiron.services.folders.Sources, "read", fail)

    assert client.post("/deployments", json=deployment).status_code == 502


def test_all_that_is_wrong_with_a_request_is_said_at_once(refused, deployment):
    wrong = {**deployment, "slo": "200", "timeout": "soon", "directory": "nowhere"}

    status, error = refused("/deployments", json=wrong)

    assert (status, error["code"]) == (400, "bad-duration")
    for said in ("3 faults: ", "slo '200' needs", "timeout 'soon' needs", "'nowhere' is not there"):
        assert said in error["message"]


def test_all_fields_of_a_body_that_are_wrong_are_named_at_once(refused):
    status, error = refused("/deployments", json={"directry": "demo", "samples": "3"})

    assert (status, error["code"]) == (400, "bad-request")
    for place in ("(at slo)", "(at samples)", "(at directry)"):
        assert place in error["message"]


@pytest.mark.parametrize(
    "constraints",
    [
        {"format": 2, "isolate": {"first": "planet"}},
        {"format": 1, "isolate": {"third": "wrap"}},
    ],
)
def test_what_is_wrong_with_constraints_is_said_in_the_words_of_the_command(
    refused, root, deployment, tmp_path, constraints, monkeypatch
):
    folder = root / "demo"
    (folder / "constraints.json").write_text(json.dumps(constraints))
    for name in ("profile", "platform"):
        (tmp_path / f"{name}.json").write_text(json.dumps(deployment[name]))

    status, error = refused("/deployments", json=deployment)

    measured = [f"--{name}={tmp_path / name}.json" for name in ("profile", "platform")]
    monkeypatch.chdir(root)
    said = CliRunner().invoke(deploy.command, [folder.name, "--slo=1s", *measured, "--local"])
    assert status == 400
    assert isinstance(said.exception, ChironError)
    assert (said.exception.code, said.exception.message) == (error["code"], error["message"])


def test_what_the_constraints_of_a_body_name_wrongly_is_said_with_all_else(
    refused, workflow, profile, platform
):
    body = {"workflow": workflow, "profile": profile, "platform": platform, "slo": "1"}
    constraints = {"format": 1, "isolate": {"third": "wrap"}, "no_check": ["fourth"]}

    _, error = refused("/scheduler/schedule", json={**body, "constraints": constraints})

    for said in (
        "3 faults: ",
        "constraints for third",
        "no_check of constraints.json has fourth",
        "slo '1'",
    ):
        assert said in error["message"]
