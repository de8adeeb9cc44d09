"""The verbs of `chiron evaluate` that measure deployments, as a user runs them."""

from __future__ import annotations

import json
import re
import signal

import psutil
import pytest

from cli.evaluate_all import find_workflows
from workflow.errors import ChironError

VERBS = ("all", "cost", "cpu", "latency", "memory", "slo", "throughput")


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_every_verb_has_an_example_that_is_its_own(verb, chiron):
    result = chiron("evaluate", verb, "--help")
    assert result.status == 0
    assert f"Example:\n    chiron evaluate {verb}" in result.stdout


def test_the_group_lists_every_verb(chiron):
    listed = chiron("evaluate", "--help").stdout
    assert [verb for verb in VERBS if f"  {verb} " not in listed] == []


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["latency"], "DIR"),
        (["latency", "nowhere"], "nowhere"),
        (["cpu", "small", "--mechanisms=magic"], "'magic'"),
        (["memory", "small", "--models=mine"], "'mine'"),
        (["all"], "--workflows"),
        (["all", "--workflows=nowhere"], "'nowhere'"),
        (["all", "--only-report"], "run.json"),
        (["latency", "small", "small"], "two of the workflows are called small"),
    ],
)
def test_a_command_line_that_is_wrong(arguments, word, chiron, small):
    result = chiron("evaluate", *arguments)
    assert (result.status, result.stdout) == (2, "")
    assert word in result.error()


def test_latency_is_measured_shown_and_written(chiron, artefacts, tmp_path):
    given = ("--profile=profile.json", "--platform=platform.json", "--slo=1s", "--samples=5")
    chosen = ("--models=faastlane,pgp", "--mechanisms=fork", "-o", "found", "--json", "--local")
    result = chiron("evaluate", "latency", "small", *given, *chosen)
    assert result.status == 0, result.stderr
    assert {row["variant"] for row in result.json["rows"]} == {"faastlane fork", "pgp fork"}
    assert result.json == json.loads((tmp_path / "found" / "latency.json").read_text())
    assert "faastlane fork" in result.stderr
    assert (tmp_path / "found" / "latency.csv").read_text().count("\n") == 3
    again = chiron("evaluate", "latency", "small", *given, *chosen)
    assert again.json == result.json  # nothing was measured again
    assert "round" not in again.stderr
    other = chiron("evaluate", "latency", "small", "--local", "-o", "found", "--slo=2s")
    assert other.status == 2
    assert "name another folder" in other.stderr
    report = chiron("evaluate", "all", "--only-report", "-o", "found")
    assert report.status == 0
    assert "</html>" in (tmp_path / "found" / "report.html").read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_leaves_nothing_running_and_what_was_measured(number, start, artefacts, tmp_path):
    running = start(
        "evaluate", "slo", "small", "--local", "--slo=1s", "--samples=2000", "-o", "found",
        "--models=faastlane,pgp", "--mechanisms=fork", "--profile=profile.json",
        "--platform=platform.json",
    )  # fmt: skip
    running.wait_for(re.compile(r"requests: (round 3) of"))
    below = psutil.Process(running.pid).children(recursive=True)
    assert below
    assert running.end(number) in (130, 128 + number)
    _, alive = psutil.wait_procs(below, timeout=60)
    assert alive == []
    assert (tmp_path / "found" / "small" / "requests.jsonl").read_text().count("\n") >= 2


def test_workflows_are_found_by_folder_or_by_name(tmp_path, write_folder):
    write_folder(tmp_path / "benchmarks" / "one")
    write_folder(tmp_path / "benchmarks" / "two")
    write_folder(tmp_path / "mine")
    names = [str(folder) for folder in find_workflows(None, tmp_path)]
    assert names == ["benchmarks/one", "benchmarks/two"]
    assert list(map(str, find_workflows("mine, two", tmp_path))) == ["mine", "benchmarks/two"]
    with pytest.raises(ChironError, match="no workflow folder"):
        find_workflows("three", tmp_path)
