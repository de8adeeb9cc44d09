"""Whatever is sent to the services, they answer as their OpenAPI document says, never with 5xx."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from chiron.services.app import Config, create_app
from chiron.services.jobs import JobStore
from chiron.workflow.errors import ChironError

#: Cases of every operation: of all together more than 20,000 in a soak.
CASES, SOAK_CASES = 10, 2_300
OPERATIONS = [
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
]


@contextmanager
def _no_gateway():
    raise ChironError("no-gateway", "no gateway answers here", status=502)
    yield


def _run_here(work, _limits, _tell, _stop):
    return work(lambda line: None)


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """All services, with a queue that takes every job and runs none."""
    folder = tmp_path_factory.mktemp("services")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "chiron.services.host.JobStore", lambda path: JobStore(path, queue_limit=10**9)
        )
        yield create_app(
            Config(_no_gateway, "http://127.0.0.1:9", folder, folder / "state", run=_run_here)
        )


@pytest.fixture(scope="module")
def schema(app):
    """What the services say of themselves; takes long to import."""
    schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis")
    return schemathesis.openapi.from_wsgi("/openapi.json", app)


def exchange(schema, method, path, cases):
    """Send so many cases of an operation, right ones and wrong ones; returns how many it were."""
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    checks = (
        not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_schema_conformance,
    )
    operation = schema[path][method]
    sent = 0
    right, wrong = (operation.as_strategy(mode) for mode in GenerationMode)

    @settings(
        max_examples=cases,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )
    @given(case=right if method == "GET" and "{" not in path else right | wrong)
    def send(case):
        nonlocal sent
        sent += 1
        case.call_and_validate(checks=checks)

    send()
    return sent


@pytest.mark.slow
def test_every_operation_is_here(schema):
    assert {
        (operation.ok().method.upper(), operation.ok().path)
        for operation in schema.get_all_operations()
    } == set(OPERATIONS)


@pytest.mark.slow
def test_some_cases(schema):
    for method, path in OPERATIONS:
        exchange(schema, method, path, CASES)


@pytest.mark.soak
@pytest.mark.timeout(460)
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_very_many_cases(schema, method, path):
    # Those that take nothing are sent as often as there are ways to.
    takes_something = "{" in path or (method == "POST" and path != "/profiler/calibrate")

    assert exchange(schema, method, path, SOAK_CASES) >= SOAK_CASES * takes_something
