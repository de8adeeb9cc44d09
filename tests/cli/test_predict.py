"""`chiron predict` explains and draws one plan where it is asked to."""

from __future__ import annotations

import json
import re

import pytest

from tests.rows import each_row


def test_an_explanation_sums_up_to_the_prediction(chiron, planned):
    result = chiron("predict", planned, "--plan", "plan.json", "--explain", "--json")
    (payload,) = result.json["payloads"]
    steps = payload["steps"]
    assert sum(step["latency_ms"] for step in steps) == pytest.approx(
        result.json["prediction"]["latency_ms"] - payload["request_ms"], abs=0.01
    )
    for step in steps:
        assert sum(step["parts"].values()) == pytest.approx(step["latency_ms"], abs=0.01)


def test_the_rows_of_an_explanation_sum_up_to_the_prediction(chiron, planned):
    asked = ("predict", planned, "--plan", "plan.json", "--explain")
    explained = chiron(*asked, "--json").json
    assert explained["payloads"][0]["request_ms"] > 0
    *_, table = chiron(*asked).stderr.partition("where the time goes")
    times = [float(cell) for cell in table.split() if re.fullmatch(r"\d+\.\d\d", cell)]
    assert sum(times) == pytest.approx(explained["prediction"]["latency_ms"], abs=0.2)


def test_a_trace_shows_every_task(chiron, planned, tmp_path):
    result = chiron("predict", planned, "--plan", "plan.json", "--trace", "trace.json")
    assert "wrote trace.json" in result.stderr
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    tasks = sorted(event["name"] for event in events if event.get("cat") == "task")
    assert tasks == ["M1", "M2", "M3", "Split it", "Wave", "Zusammen/fügen? {50 %}"]


def doubted(folder, **warnings):
    """Writes these warnings into profile.json and platform.json, as profiling, calibrating do."""
    for name, line in warnings.items():
        file = folder.parent / f"{name}.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"warnings": [line]}))


def test_every_verb_that_predicts_says_what_is_not_to_be_relied_on(chiron, artefacts):
    doubted(artefacts, profile="busy while profiled", platform="busy while calibrated")
    lines = ["* warning: busy while profiled", "* warning: busy while calibrated"]
    for verb in (
        ("schedule", artefacts, "--slo", "200ms"),
        ("schedule", artefacts, "--slo", "200ms", "--pareto"),
        ("predict", artefacts, "--plan", "plan.json"),
    ):
        result = chiron(*verb)
        assert [line for line in result.stderr.splitlines() if "warning" in line] == lines, verb
    result = chiron("predict", artefacts, "--plan", "plan.json", "--json")
    assert result.json["warnings"] == ["busy while profiled", "busy while calibrated"]


@each_row("flag", [["--explain"], ["--trace", "trace.json"]])
def test_many_plans_are_neither_explained_nor_drawn(flag, chiron, planned):
    result = chiron("predict", planned, "--plans", "plan.json", *flag)
    assert result.status == 2
    assert "--plan" in result.error()


def test_a_load_adds_what_requests_wait_for_each_other(chiron, planned):
    alone = chiron("predict", planned, "--plan", "plan.json", "--json").json["within"]["ms"]
    loads = [("--rate", "0.01/s"), ("--rate", "20/s"), ("--clients", "50")]
    found = [chiron("predict", planned, "--plan", "plan.json", "-j", *load).json for load in loads]
    p95 = [each["within"][1]["ms"] for each in found]
    assert [each["percentile"] for each in found[0]["within"]] == [50, 95, 99]
    assert p95[0] == pytest.approx(alone, rel=0.01)
    assert p95 == sorted(p95)
    assert p95[2] > 2 * p95[0]
    assert found[2]["throughput_per_s"] == pytest.approx(found[0]["saturation"]["per_s"], rel=0.1)


def test_too_high_a_rate_has_no_percentiles_and_more_replicas_do_more(chiron, planned):
    asked = ("predict", planned, "--plan", "plan.json", "--rate", "100000/s", "--json")
    one, three = chiron(*asked).json, chiron(*asked, "--replicas", "3").json
    assert one["within"] == three["within"] == []
    assert set(three["replicas"].values()) == {3}
    assert three["saturation"]["per_s"] > one["saturation"]["per_s"]
    table = chiron(*asked[:-1])
    assert (table.status, table.stdout) == (0, "")
    assert "add replicas" in table.stderr


@each_row(
    "options",
    [
        ["--rate", "50"],
        ["--rate", "0/s"],
        ["--rate", "nan/s"],
        ["--rate", "50/s", "--clients", "3"],
        ["--replicas", "2"],
        ["--rate", "50/s", "--explain"],
    ],
)
def test_a_load_that_makes_no_sense_is_refused(options, chiron, planned):
    result = chiron("predict", planned, "--plan", "plan.json", *options)
    assert result.status == 2
    assert result.error()
