"""Wraps answer as the reference does, whatever runs them and by whichever mechanism."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import get_args

import pytest

from cli.images import BUILDERS
from generator.generate import Sources
from generator.launcher import Launcher
from generator.reference import reference
from openfaas.client import Gateway
from workflow.plan import Mechanism, Plan

REQUESTS = [b'{"a": 1.0}', "ü".encode(), b"", json.dumps("x" * 2_000_000).encode()]


def two_wraps(mechanism: str) -> Plan:
    """The small workflow on two wraps: threads, further processes, and a remote wrap."""
    main = [[["Split it"]], [["Wave"]], [["M1"], ["M3"]], [[], ["Zusammenfügen"]]]
    wraps = [
        {"name": f"{mechanism}-main", "cpus": 2, "memory_mib": 256, "stages": stages(main)},
        {
            "name": f"{mechanism}-remote",
            "cpus": 1,
            "memory_mib": 128,
            "stages": [{"stage": 1, "processes": [["M2"]]}],
        },
    ]
    plan = {"format": 1, "workflow": "small", "model": "faastlane+", "mechanism": mechanism}
    return Plan.model_validate_json(json.dumps(plan | {"wraps": wraps, "cpus": 3}))


def stages(processes: list[list[list[str]]]) -> list[dict[str, object]]:
    return [{"stage": n, "processes": each} for n, each in enumerate(processes)]


@pytest.fixture
def gateway(embedded) -> Iterator[Gateway]:
    with Gateway(embedded.url) as client:
        yield client


@pytest.mark.parametrize("mechanism", get_args(Mechanism))
def test_the_output_is_the_references(mechanism, backend, gateway, small):
    launcher = Launcher(gateway, BUILDERS[backend])
    with launcher.launch(small.workflow, small, two_wraps(mechanism)) as deployment:
        for request in REQUESTS:
            expected = reference(Sources.read(small), request, gateway.url).output
            assert deployment.invoke(request).output == expected


def test_a_failing_function_is_named(backend, gateway, small):
    launcher = Launcher(gateway, BUILDERS[backend])
    with ExitStack() as stack:
        deployment = stack.enter_context(launcher.launch(small.workflow, small, two_wraps("fork")))
        answer = gateway.invoke(deployment.names[0], b'"boom"')
        assert answer.status_code == 500
        assert answer.json()["function"] == "wave"
        assert "no waves today" in answer.json()["message"]
