"""A workflow and an SLO posted to the services end as a measured deployment, for real."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import requests

from chiron.cli.place import build_local
from chiron.deployment.deploy import remove_all
from chiron.deployment.launcher import Launcher
from chiron.deployment.verdict import FEWEST, MOST
from chiron.openfaas.client import Gateway
from chiron.services.app import create_app
from chiron.workflow.folder import WorkflowFolder

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
BOUND_S = 90


@pytest.fixture
def client(config, embedded):
    """A client of services that deploy the benchmarks on the embedded gateway."""

    @contextmanager
    def connect():
        with Gateway(embedded.url) as opened:
            yield Launcher(opened, build_local)

    at = {"connect": connect, "gateway_url": embedded.url, "root": BENCHMARKS.parent}
    app = create_app(replace(config, **at))
    with app.extensions["chiron"].running():
        yield app.test_client()
    with connect() as launcher:
        remove_all(launcher.gateway, [each.name for each in launcher.gateway.functions()])


@pytest.fixture
def request_body(platform):
    """A deployment of finra whose profile and platform are given, so that nothing is traced."""
    functions = WorkflowFolder.open(BENCHMARKS / "finra").workflow.functions
    period = {"kind": "cpu", "start_ms": 0.0, "duration_ms": 3.0}
    profiles = {name: {"latency_ms": 3.0, "periods": [period]} for name in functions}
    profile = {"format": 1, "workflow": "finra", "functions": profiles}
    return {"slo": "60s", "profile": profile, "platform": platform}


@pytest.fixture
def deployed(client, wait_until):
    """Post a deployment; returns its job, once it has ended."""

    def post(**body):
        accepted = client.post("/deployments", **body)
        assert accepted.status_code == 202, accepted.text
        location = accepted.headers["Location"]
        wait_until(lambda: client.get(location).json["finished"], BOUND_S)
        return client.get(location).json

    return post


def check(job, gateway_url):
    assert job["status"] == "done", job["error"]
    report = job["result"]
    assert report["slo_met"] is True
    assert report["plan"]["meets_slo"] is True
    assert 0 < report["measured"]["p50_ms"] <= report["measured"]["p95_ms"]
    payload = (BENCHMARKS / "finra" / "payload.json").read_bytes()
    entry = report["functions"][0]
    answer = requests.post(f"{gateway_url}/function/{entry}", data=payload, timeout=BOUND_S)
    assert answer.status_code == 200


@pytest.mark.usefixtures("briefly_proven")
def test_a_directory_and_an_slo_become_a_measured_deployment(deployed, request_body, embedded):
    job = deployed(json={"directory": "benchmarks/finra", **request_body})

    check(job, embedded.url)
    report = job["result"]
    (tried,) = report["tries"]
    assert tried["verdict"] == "kept"
    assert tried["requests"] == report["measured"]["samples"]
    assert FEWEST <= tried["requests"] <= MOST
    assert any(line["line"].startswith("proving: at most ") for line in job["progress"])
