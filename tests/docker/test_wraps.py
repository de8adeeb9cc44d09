"""Wraps answer as the reference does, whatever runs them and by whichever mechanism."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import requests

from chiron.cli.place import BUILDERS
from chiron.deployment.launcher import Launcher
from chiron.evaluation.reference.sources import reference_run
from chiron.generator.generate import Sources
from chiron.openfaas.client import Gateway
from chiron.predictor.mechanisms import EVERYWHERE
from chiron.workflow.plan import Plan

pytestmark = [
    pytest.mark.slow,
    pytest.mark.docker,
    pytest.mark.parametrize("backend", ["docker"], indirect=True, scope="session"),
]

REQUESTS = [b'{"a": 1.0}', "ü".encode(), b"", json.dumps("x" * 2_000_000).encode()]


def two_wraps(mechanism: str) -> Plan:
    """The small workflow on two wraps: threads, further processes, and a remote wrap."""
    wraps = [
        {
            "name": f"{mechanism}-main",
            "cpus": 2,
            "memory_mib": 256,
            "mechanism": mechanism,
            "processes": [["Split it", "Wave", "M1"], ["M3", "Zusammen/fügen? {50 %}"]],
        },
        {
            "name": f"{mechanism}-remote",
            "cpus": 1,
            "memory_mib": 128,
            "mechanism": mechanism,
            "processes": [["M2"]],
        },
    ]
    plan = {"format": 2, "workflow": "small", "planner": "faastlane+"}
    return Plan.model_validate_json(json.dumps(plan | {"wraps": wraps, "cpus": 3}))


@pytest.fixture
def gateway(embedded) -> Iterator[Gateway]:
    with Gateway(embedded.url) as client:
        yield client


@pytest.mark.parametrize("mechanism", EVERYWHERE)
def test_the_output_is_the_references(mechanism, backend, gateway, small):
    launcher = Launcher(gateway, BUILDERS[backend])
    with launcher.launch(small.workflow, small, two_wraps(mechanism)) as deployment:
        for request in REQUESTS:
            expected = reference_run(Sources.read(small), request, gateway.url).output
            assert deployment.invoke(request).output == expected


def test_a_function_alone_in_a_wrap_has_its_files_where_its_container_has_them(
    backend, gateway, write_folder, tmp_path, plan_by_hand
):
    code = 'from pathlib import Path\n\n\ndef handle(req):\n    return Path("{}").read_text()\n'
    folder = write_folder(
        tmp_path / "alone",
        {"tasks": {"reads": "reads"}, "edges": []},
        {"reads": code.format("/home/app/function/words.txt")},
        {"reads": {"words.txt": "as alone"}},
    )
    plan = plan_by_hand({"reads-wrap1": [["reads"]]})
    with Launcher(gateway, BUILDERS[backend]).launch(folder.workflow, folder, plan) as deployment:
        assert deployment.invoke(b"{}").output == "as alone"


@pytest.mark.parametrize("path", ["auto", "gateway"])
def test_objects_go_from_wrap_to_wrap_and_not_through_the_gateway(
    path, backend, gateway, small, plan_by_hand
):
    home, *others = (f"{path}-{each}" for each in ("home", "far", "near"))
    places = {home: [["Split it", "Zusammen/fügen? {50 %}"]]}
    places |= {others[0]: [["Wave", "M2"]], others[1]: [["M1"], ["M3"]]}
    plan = plan_by_hand(places, path=path)
    with Launcher(gateway, BUILDERS[backend]).launch(small.workflow, small, plan) as deployment:
        request = json.dumps("x" * 100_000).encode()
        expected = reference_run(Sources.read(small), request, gateway.url).output
        assert deployment.invoke(request).output == expected
        metrics = requests.get(f"{gateway.url}/metrics", timeout=60).text
    passed_on = {
        each: float(line.rpartition(" ")[2])
        for line in metrics.splitlines()
        for each in others
        if line.startswith(f'gateway_function_bytes_total{{function_name="{each}.')
    }
    assert passed_on.keys() == set(others)  # they ask where the others are
    assert (sum(passed_on.values()) < 1_000) == (path == "auto")
