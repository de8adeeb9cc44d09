"""The whole way from a workflow to a measured deployment, as containers."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pytest

from chiron.profiler.profile import profile as profile_functions
from chiron.workflow.documents import dump
from tests.commands import run_here

pytestmark = pytest.mark.slow

FINRA = Path(__file__).parents[2] / "benchmarks" / "finra"


@pytest.mark.docker
@pytest.mark.strace
@pytest.mark.usefixtures("engine", "home", "strace", "briefly_profiled", "briefly_proven")
def test_finra_is_profiled_planned_deployed_and_measured(platform, tmp_path, monkeypatch):
    few = partial(profile_functions, samples=4)
    monkeypatch.setattr("chiron.pipeline.deploy.profile_functions", few)
    (tmp_path / "platform.json").write_text(dump(platform))
    flags = ["--slo=60s", "--local", "--backend", "docker", "--platform=platform.json", "--json"]
    words = ["deploy", str(FINRA), *flags]
    done = run_here(words, b"", {**os.environ, "OPENFAAS_URL": ""}, tmp_path)
    assert done.status == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["measured"]["samples"] > 0
    profile = json.loads((tmp_path / "out" / "profile.json").read_text())
    assert set(profile["functions"]) >= {"marketdata", "margin-balance"}
    kinds = {p["kind"] for p in profile["functions"]["marketdata"]["periods"]}
    assert {"cpu", "block"} <= kinds
