"""The OpenAPI document is valid and whole, and the page that shows it needs no internet."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from chiron.services.app import COMPONENTS, create_app
from chiron.workflow.errors import ChironError

ENDPOINTS = {
    ("POST", "/profiler/profile"),
    ("POST", "/profiler/calibrate"),
    ("POST", "/predictor/predict"),
    ("POST", "/scheduler/schedule"),
    ("POST", "/generator/generate"),
    ("POST", "/deployments"),
    ("GET", "/deployments"),
    ("GET", "/deployments/{id}"),
    ("DELETE", "/deployments/{id}"),
    ("GET", "/jobs"),
    ("GET", "/jobs/{id}"),
    ("DELETE", "/jobs/{id}"),
    ("GET", "/healthz"),
}


@pytest.fixture
def document(client):
    return client.get("/openapi.json").json


def operations(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def test_the_document_lists_every_endpoint(document):
    assert {(method, path) for method, path, _ in operations(document)} == ENDPOINTS


def test_the_document_lists_every_route_of_the_application(app, document):
    routes = {
        (method, re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule))
        for rule in app.url_map.iter_rules()
        if not rule.endpoint.startswith(("docs.", "dashboard."))
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }

    assert routes == ENDPOINTS


def test_the_document_is_valid_openapi(document):
    validator = pytest.importorskip("openapi_spec_validator", reason="needs openapi-spec-validator")

    validator.validate(document)


def test_every_reference_has_its_schema(document):
    references = set(re.findall(r"#/components/schemas/([\w.-]+)", str(document)))

    assert references <= set(document["components"]["schemas"])


def test_every_endpoint_says_how_its_errors_look(document):
    for _, _, operation in operations(document):
        content = operation["responses"]["default"]["content"]
        assert content["application/json"]["schema"]["$ref"].endswith("/Problem")


def test_endpoints_that_take_a_folder_take_an_archive(document):
    takes = {
        path
        for _, path, operation in operations(document)
        if "archive" in str(operation.get("requestBody", {}))
    }

    assert takes == {"/profiler/profile", "/generator/generate", "/deployments"}


def test_the_page_shows_every_endpoint_and_loads_nothing_from_elsewhere(client):
    page = client.get("/docs")

    assert page.status_code == 200
    rows = re.findall(r"<tr><td>(\w+)</td><td><code>([^<]+)</code>", page.text)
    assert set(rows) == ENDPOINTS
    loaded = re.findall(r'(?:src|href|url)[=:]\s*"([^"]+)"', page.text)
    assert "/openapi.json" in loaded
    for url in loaded:
        assert url.startswith("/")
        assert client.get(url).status_code == 200


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_is_served_alone(config, component):
    client = create_app(replace(config, components=[component])).test_client()

    served = {path.split("/")[1] for path in client.get("/openapi.json").json["paths"]}

    assert served == {component, "jobs", "healthz"}
    others = [path for _, path in ENDPOINTS if path.split("/")[1] not in served]
    assert {client.post(path).status_code for path in others} == {404}


def test_a_component_that_there_is_not_is_refused_by_name(config):
    with pytest.raises(ChironError, match="sheduler"):
        create_app(replace(config, components=["sheduler"]))


def test_the_page_says_on_which_gateway_functions_run_and_fills_in_a_folder_that_is_there(config):
    secret = replace(config, gateway_url="http://me:pass@gateway.example.com:31112")
    document = create_app(secret).test_client().get("/openapi.json").json
    assert "on the gateway http://gateway.example.com:31112." in document["info"]["description"]
    bodies = {
        path: operation["requestBody"]["content"]["application/json"].get("example")
        for method, path, operation in operations(document)
        if "requestBody" in operation
    }
    assert bodies["/deployments"] == {"directory": "demo", "slo": "200ms"}
    assert bodies["/profiler/profile"] == {"directory": "demo"}
    assert bodies["/scheduler/schedule"] is None
