"""The long verbs, run whole on a gateway of their own: deploy, invoke, evaluate."""

from __future__ import annotations

import json
import os
import re

import pytest

from chiron.evaluation.reference.sources import reference_run
from chiron.generator.generate import Sources
from chiron.workflow.documents import dump
from tests.commands import run_here

KNOWN = ("--profile", "profile.json", "--platform", "platform.json")


@pytest.fixture
def chiron(home, small, profile_of, platform, tmp_path, briefly_proven):
    """Runs chiron where profile.json and platform.json are; returns (status, stdout, stderr)."""
    (tmp_path / "profile.json").write_text(dump(profile_of(small.workflow)))
    (tmp_path / "platform.json").write_text(dump(platform))

    def run(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
        ended = run_here(list(arguments), stdin, {**os.environ, "OPENFAAS_URL": ""}, tmp_path)
        return ended.status, ended.stdout, ended.stderr

    return run


def test_deploy_shows_predicted_and_measured_side_by_side_and_the_next_command(
    chiron, platform, tmp_path
):
    doubtful = platform.model_copy(update={"warnings": ("busy while it was calibrated",)})
    (tmp_path / "platform.json").write_text(dump(doubtful))
    status, stdout, stderr = chiron("deploy", "small", "--slo=60s", "--local", *KNOWN)
    assert (status, stdout) == (0, ""), stderr
    for shown in ("predicted ms", "measured p50 ms", "SLO of 60000 ms is met", "chiron serve",
                  "proving: at most ", "plans that were tried", "promised: 95 % of requests within",
                  " *", "* warning: busy while it was calibrated"):  # fmt: skip
        assert shown in stderr
    # It needs no faas-cli.
    assert stderr.splitlines()[-1] == "next: chiron serve, then this command without --local"
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"profile.json", "platform.json", "plan.json", "build", "residuals.json"}


def test_where_no_plan_keeps_the_slo_the_status_is_3_and_the_tries_are_in_the_json(chiron):
    unreachable = ("deploy", "small", "--slo=1ms", "--local", *KNOWN)
    status, stdout, stderr = chiron(*unreachable, "--tries=2", "--json")
    assert status == 3, stderr
    report = json.loads(stdout)
    assert not report["slo_met"] and report["functions"]
    assert {each["verdict"] for each in report["tries"]} == {"broken"}
    assert 1 <= len(report["tries"]) <= 2
    assert "no plan was measured to keep the SLO of 1 ms" in stderr
    assert "asked: 95 % of requests within 1 ms; measured: 0 % of 20 within" in stderr

    status, _, stderr = chiron(*unreachable, "--no-prove")
    assert (status, "the SLO of 1 ms is NOT met" in stderr) == (0, True), stderr


def test_what_deploy_left_on_a_gateway_is_invoked_listed_and_removed(
    chiron, place, small, tmp_path
):
    url = place.gateway.url
    status, stdout, stderr = chiron("deploy", "small", "--slo=60s", "-g", url, *KNOWN, "--json")
    assert status == 0, stderr
    report = json.loads(stdout)
    assert 0 <= report["measured"]["others"] <= 1
    try:
        assert set(report["functions"]) <= place.names()
        expected = reference_run(Sources.read(small), b'{"a": 1.0}', url).output
        assert chiron("invoke", "small", "-g", url, stdin=b'{"a": 1.0}')[:2] == (0, f"{expected}\n")
        status, stdout, said = chiron("invoke", "small", "-g", url, "--json", stdin=b'{"a": 1.0}')
        answer, predicted = json.loads(stdout), report["plan"]["predicted"]
        assert answer["output"] == expected
        assert answer["predicted"]["latency_ms"] == predicted["latency_ms"]
        assert f" ms (predicted: p50 {predicted['latency_ms']:.1f}, p95 " in said
        traced = ("invoke", "small", "-g", url, "--trace", "trace.json")
        assert chiron(*traced, stdin=b'{"a": 1.0}')[:2] == (0, f"{expected}\n")
        assert '"cat": "task"' in (tmp_path / "trace.json").read_text()
        status, stdout, stderr = chiron("invoke", "small", "-g", url, stdin=b'"boom"')
        assert (status, stdout) == (1, "")
        assert stderr.startswith("error: function wave failed: ")
        assert len(stderr.splitlines()) == 1
        (listed,) = json.loads(chiron("list", "-g", url, "--json")[1])["deployments"]
        assert set(listed["functions"]) == set(report["functions"])
        assert listed["predicted"]["cpus"] == report["plan"]["cpus"] and listed["calls"] > 50
        assert "small" in chiron("list", "-g", url)[2]
        said = chiron("logs", "small", "wave", "-g", url)[1]
        assert "no waves today" in said and "[mirror" not in said
        (execution,) = set(re.findall(r"\[wave ([0-9a-f]{8})\]", said))
        whole = chiron("logs", "small", "--execution", execution, "-g", url)[1]
        assert f"[wave {execution}] ValueError: no waves today" in whole
        other = chiron("logs", "small", "--execution", "0" * 8, "-g", url)
        assert other[:2] == (0, "")
    finally:
        assert chiron("remove", "small", "-g", url)[0] == 0
    assert not set(report["functions"]) & place.names()
    status, _, stderr = chiron("remove", "small", "-g", url)
    assert status == 2 and "workflow small is not deployed" in stderr


@pytest.mark.slow
def test_evaluate_compares_planners_and_leaves_the_figures(chiron, tmp_path):
    status, stdout, stderr = chiron(
        "evaluate", "latency", "small", "--slo=60s", "--planners=pgp,sand", "--samples=2",
        "--local", *KNOWN, "--json",
    )  # fmt: skip
    assert status == 0, stderr
    assert json.loads(stdout) == json.loads((tmp_path / "out" / "latency.json").read_text())
    variants = [row["variant"] for row in json.loads(stdout)["rows"]]
    assert variants == ["sand fork", "sand pool", "pgp fork", "pgp pool"]
    assert "…" not in stderr  # no figure is cut
