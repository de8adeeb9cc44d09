"""The dashboard is guarded as the API is, and costs nothing until it is asked for."""

from __future__ import annotations

import base64
import json
import sys
from dataclasses import replace

import pytest

from chiron.openfaas.credentials import Credentials
from chiron.scheduler.choices import NO_CHOICES, Choices
from chiron.services.app import create_app
from chiron.services.dashboard.uploads import Upload
from chiron.workflow.errors import ChironError
from chiron.workflow.units import parse_duration_ms
from tests.rows import each_row

PATHS = ("/", "/_dash-layout", "/_dash-dependencies", "/assets/dashboard.css")
JSON = {"Content-Type": "application/json"}
UPDATE = "/_dash-update-component"


def test_without_the_token_nothing_is_told(config):
    client = create_app(
        replace(config, secret=Credentials.bearer("long-enough-a-token"))
    ).test_client()
    assert client.post(UPDATE, json={}).status_code == 401
    for path in PATHS:
        answer = client.get(path)
        assert (answer.status_code, answer.json["code"]) == (401, "unauthorised")
        admitted = client.get(path, headers={"Authorization": "Bearer long-enough-a-token"})
        assert admitted.status_code == 200


def test_without_dash_the_page_names_the_extra_and_the_api_answers(config, monkeypatch):
    monkeypatch.setitem(sys.modules, "chiron.services.dashboard.app", None)
    monkeypatch.setitem(sys.modules, "dash", None)
    monkeypatch.delitem(sys.modules, "chiron.services.dashboard.app")
    for name in [name for name in sys.modules if name.startswith("chiron.services.dashboard.")]:
        if name != "chiron.services.dashboard.mount":
            monkeypatch.delitem(sys.modules, name)
    client = create_app(config).test_client()

    answer = client.get("/")

    assert (answer.status_code, answer.json["code"]) == (501, "no-dashboard")
    assert "chiron-openfaas[dashboard]" in answer.json["message"]
    assert client.get("/healthz").status_code == 200


@each_row("headers", [{"Origin": "http://evil.example"}, {"Host": "evil.example"}])
def test_pages_of_other_sites_are_refused(client, headers):
    for answer in (
        *(client.get(path, headers=headers) for path in PATHS),
        client.post(UPDATE, json={}, headers=headers),
    ):
        assert answer.status_code == 403
        assert answer.json["code"] in ("cross-origin", "unknown-host")


def test_what_is_dropped_before_the_page_knows_its_address_is_shown(client, workflow):
    callbacks = client.get("/_dash-dependencies").json
    (show,) = (each for each in callbacks if each["output"].startswith("..known.data."))
    names = (each.split(".") for each in show["output"].strip(".").split("..."))
    content = base64.b64encode(json.dumps(workflow).encode()).decode()
    given = {
        "dropped": {"names": ["workflow.json"], "contents": [content], "size": len(content)},
        "address": "/",
    }
    answer = client.post(
        UPDATE,
        json={
            "output": show["output"],
            "outputs": [{"id": name, "property": property_} for name, property_ in names],
            "inputs": [each | {"value": given.get(each["id"])} for each in show["inputs"]],
            "changedPropIds": ["address.pathname", "dropped.data"],
            "state": [each | {"value": None} for each in show["state"]],
        },
    )
    assert answer.json["response"]["known"]["data"]["name"]


@pytest.fixture
def deploying(profile, platform):
    """What the browser sends when Deploy is clicked."""
    outputs = [("deployment", "data"), ("deploy-faults", "children")]
    values = {
        "source": {"directory": "demo"},
        "dropped": None,
        "known": {"profile": profile, "platform": platform, "name": "demo"},
    }
    state = [{"id": name, "property": "data", "value": value} for name, value in values.items()]
    return {
        "output": "..deployment.data...deploy-faults.children..",
        "outputs": [{"id": name, "property": property_} for name, property_ in outputs],
        "inputs": [{"id": "deploy", "property": "n_clicks", "value": 1}],
        "changedPropIds": ["deploy.n_clicks"],
        "state": [*state, {"id": "slo", "property": "value", "value": 200}, [], []],
    }


def test_deploying_queues_the_job_that_the_api_queues(client, deploying, deployment, app):
    answer = client.post(UPDATE, json=deploying, headers={"X-Request-Id": "ours"})

    (job,) = client.get("/jobs").json["jobs"]
    assert answer.json["response"]["deployment"]["data"] == [job["id"], "demo"]
    client.post("/deployments", json=deployment)
    dashboards, apis = (app.extensions["chiron"].store.claim(["deployment"]) for _ in range(2))
    assert dashboards.request_id == "ours"
    assert dashboards.params["folder"] == apis.params["folder"]
    assert parse_duration_ms(dashboards.params["request"].pop("slo"), "slo") == 200
    apis.params["request"].pop("slo")
    assert dashboards.params["request"] == apis.params["request"]


@each_row(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Content-Type": "text/plain"}, 415),
    ],
)
def test_pages_of_other_sites_deploy_nothing(client, deploying, headers, status):
    answer = client.post(UPDATE, data=json.dumps(deploying), headers=JSON | headers)

    assert answer.status_code == status
    assert client.get("/jobs").json["jobs"] == []


def test_a_page_may_load_nothing_from_elsewhere(client):
    answer = client.get("/")

    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self' 'sha256-")
    assert "unsafe-eval" not in policy
    assert 'src="http' not in answer.text
    assert answer.headers["X-Frame-Options"] == "DENY"


def test_a_broken_callback_tells_nothing_and_the_page_goes_on(client):
    answer = client.post(UPDATE, data=b"{", content_type="application/json")

    assert answer.status_code >= 400
    assert set(answer.json) == {"code", "message", "path", "functions"}
    assert client.get("/").status_code == 200


@pytest.mark.parametrize("content", [None, "%%%"])
def test_a_file_that_came_in_part_is_refused_by_name(content):
    with pytest.raises(ChironError, match=r"a\.zip") as refusal:
        Upload(names=["a.zip"], contents=[content], size=3).packed()
    assert refusal.value.code == "bad-archive"


def test_an_archive_is_taken_as_it_is():
    content = base64.b64encode(b"PK").decode()

    assert Upload(names=["folder.ZIP"], contents=[content], size=2).packed() == b"PK"


def test_what_is_too_large_is_refused_before_it_is_read():
    with pytest.raises(ChironError, match="41 MiB") as refusal:
        Upload(names=["a.zip"], contents=[], size=41 * 1024 * 1024).packed()
    assert (refusal.value.code, refusal.value.status) == ("too-large", 413)


def test_every_choice_has_a_field_that_stands_for_its_default():
    from dash import html  # takes long

    from chiron.services.dashboard.options import chosen
    from chiron.services.dashboard.options import fields as fields_of

    fields = [part for part in html.Div(fields_of([]))._traverse() if hasattr(part, "value")]
    entries = [part for part in fields if isinstance(getattr(part, "id", None), dict)]

    given = chosen((part.value for part in entries), (part.id for part in entries))

    assert {part.id["field"] for part in entries} == set(Choices.model_fields)
    assert Choices.model_validate(given) == NO_CHOICES
