"""The whole way from a workflow to a measured deployment, as processes and as containers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chiron.workflow.documents import dump

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-c", "from chiron.cli.main import main; main()"]
TIMEOUT_S = 240


@pytest.mark.strace
@pytest.mark.timeout(TIMEOUT_S + 30)
def test_finra_is_profiled_planned_deployed_and_measured(backend, home, strace, platform, tmp_path):
    (tmp_path / "platform.json").write_text(dump(platform))
    flags = ["--slo=60s", "--local", "--backend", backend, "--platform=platform.json", "--json"]
    done = subprocess.run(
        [*COMMAND, "deploy", str(ROOT / "benchmarks" / "finra"), *flags],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "OPENFAAS_URL": ""},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["measured"]["samples"] > 0
    profile = json.loads((tmp_path / "out" / "profile.json").read_text())
    assert set(profile["functions"]) >= {"marketdata", "margin-balance"}
    kinds = {p["kind"] for p in profile["functions"]["marketdata"]["periods"]}
    assert {"cpu", "block"} <= kinds
