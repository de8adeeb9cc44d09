"""The verbs of `chiron evaluate` that measure deployments, as a user runs them."""

from __future__ import annotations

import json
import re
import signal
import sys

import psutil
import pytest

from chiron.evaluation.bench.machine import RESULTS, this_machine
from chiron.evaluation.commands import command as group
from chiron.evaluation.commands import options as evaluate_options
from chiron.evaluation.commands.all import find_workflows
from chiron.evaluation.commands.options import command_line
from chiron.workflow.documents import dump
from chiron.workflow.errors import ChironError
from tests.rows import each_row

VERBS = sorted(group.commands)


@each_row("verb", VERBS)
def test_the_help_of_every_verb_has_an_example_that_is_its_own(verb, chiron):
    result = chiron("evaluate", verb, "--help")
    assert result.status == 0
    assert f"Example:\n    chiron evaluate {verb}" in result.stdout


def test_the_group_lists_every_verb(chiron):
    listed = chiron("evaluate", "--help").stdout
    assert [verb for verb in VERBS if f"  {verb} " not in listed] == []


@each_row(
    ("arguments", "word"),
    [
        (["latency"], "DIR"),
        (["latency", "nowhere"], "nowhere"),
        (["cpu", "small", "--mechanisms=magic"], "'magic'"),
        (["memory", "small", "--planners=mine"], "'mine'"),
        (["slo", "small", "--trigger=luck"], "'luck'"),
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


@pytest.mark.slow
def test_latency_is_measured_shown_and_written(chiron, artefacts, tmp_path):
    given = ("--profile=profile.json", "--platform=platform.json", "--slo=1s", "--samples=5")
    chosen = ("--planners=faastlane,pgp", "--mechanisms=fork", "-o", "found", "--json", "--local")
    result = chiron("evaluate", "latency", "small", *given, *chosen)
    assert result.status == 0, result.stderr
    assert {row["variant"] for row in result.json["rows"]} == {"faastlane fork", "pgp fork"}
    assert result.json == json.loads((tmp_path / "found" / "latency.json").read_text())
    assert "faastlane fork" in result.stderr
    assert (tmp_path / "found" / "latency.csv").read_text().count("\n") == 3
    again = chiron("evaluate", "latency", "small", *given, *chosen)
    assert again.json == result.json  # nothing was measured again
    assert ("round 1 of" in result.stderr, "round 1 of" in again.stderr) == (True, False)
    other = chiron("evaluate", "latency", "small", "--local", "-o", "found", "--slo=2s")
    assert other.status == 2
    assert "name another folder" in other.stderr
    report = chiron("evaluate", "all", "--only-report", "-o", "found")
    assert report.status == 0
    assert "</html>" in (tmp_path / "found" / "report.html").read_text()


@pytest.fixture
def good_and_bad(artefacts, small, profile_of, write_folder, tmp_path) -> list[str]:
    """A workflow, one whose function is missing, and one that is no workflow; profiles in found."""
    states = json.loads((small.path / "workflow.json").read_text())
    lacking = write_folder(tmp_path / "lacking", states | {"Name": "lacking"})
    (lacking.path / "functions" / "wave" / "handler.py").unlink()
    write_folder(tmp_path / "broken")
    (tmp_path / "broken" / "workflow.json").write_text("{")
    for each in (small, lacking):
        file = tmp_path / "found" / each.workflow.name / "profile.json"
        file.parent.mkdir(parents=True)
        file.write_text(dump(profile_of(each.workflow)))
    return ["broken", "lacking", "small"]


@pytest.mark.slow
def test_a_bad_folder_ends_no_run_over_several(good_and_bad, chiron, tmp_path):
    result = chiron(
        "evaluate", "latency", *good_and_bad, "--local", "--slo=1s", "--samples=3", "-o", "found",
        "--planners=faastlane,pgp", "--mechanisms=fork", "--platform=platform.json", "--no-check",
        "--quick", "--json",
    )  # fmt: skip
    assert (result.status, result.json["message"][:8]) == (2, "2 faults")
    rows = json.loads((tmp_path / "found" / "latency.json").read_text())["rows"]
    assert [row["workflow"] for row in rows if "value" in row] == ["small", "small"]
    *_, last = result.stderr.splitlines()
    assert last.startswith("error: 2 faults: broken: ")
    assert "lacking: function wave" in last


@pytest.mark.slow
def test_a_bad_folder_ends_no_comparison_of_several(good_and_bad, chiron, tmp_path):
    rows = tmp_path / "out" / "prediction-rows"
    rows.mkdir(parents=True)
    for name in ("small", "lacking"):
        (tmp_path / "found" / name / "profile.json").rename(rows / f"{name}.profile.json")
    result = chiron(
        "evaluate", "prediction", *good_and_bad, "--local", "--plans=1", "--samples=1",
        "--no-baselines", "--platform=platform.json",
    )  # fmt: skip
    assert result.status == 2
    found = json.loads((tmp_path / "out" / "prediction.json").read_text())["workflows"]
    assert {each["workflow"] for each in found} == {"small"}
    *_, last = result.stderr.splitlines()
    assert last.startswith("error: 2 faults: broken: ")


def test_what_is_left_out_is_said_first_with_the_line_that_brings_it(chiron, environment, tmp_path):
    hidden = "dict.fromkeys(('matplotlib', 'sklearn', 'torch'))"
    (tmp_path / "sitecustomize.py").write_text(f"import sys; sys.modules.update({hidden})")
    path = f"{tmp_path}:{environment['PYTHONPATH']}"
    result = chiron("evaluate", "prediction", "--rows", "nowhere", PYTHONPATH=path)
    assert result.status == 2
    pictures, learned, *_ = result.stderr.splitlines()
    line = f"{sys.executable} -m pip install 'chiron-openfaas"
    assert pictures == (
        "· left out: pictures (matplotlib is missing), RFR (scikit-learn is missing): "
        f"{line}[evaluation]'"
    )
    assert learned.endswith(f"{line}[baselines]'")


@pytest.mark.parametrize(
    "words",
    [
        ["dashboard", "small"],
        ["latency", "small", "--local"],
        ["prediction", "small", "--local"],
        ["profiler", "--local-launcher"],
        ["runtime"],
        ["scheduler"],
        ["workflows", "--local"],
    ],
)
def test_evidence_from_a_dirty_tree_is_refused_before_anything_is_measured(
    words, chiron, artefacts, monkeypatch
):
    """Documents cite what is below evaluation/results: anybody has to be able to repeat it."""
    dirty = this_machine().model_copy(update={"commit": "0123456789ab-dirty-0123456789ab"})
    monkeypatch.setattr(evaluate_options, "this_machine", lambda: dirty)
    result = chiron("evaluate", *words, "-o", str(RESULTS / "new"))
    assert result.status == 2
    assert not (RESULTS / "new").exists()
    assert "commit all changes first, or name another folder with -o" in result.error()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_leaves_nothing_running_and_what_was_measured(number, start, artefacts, tmp_path):
    running = start(
        "evaluate", "slo", "small", "--local", "--slo=1s", "--samples=2000", "-o", "found",
        "--planners=faastlane,pgp", "--mechanisms=fork", "--profile=profile.json",
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
    held = {"trigger": "immediate", "function": "wave"}
    write_folder(tmp_path / "benchmarks" / "streams", {"entry": "e", "buckets": {"e": held}})
    names = [str(folder) for folder in find_workflows(None, tmp_path)]
    assert names == ["benchmarks/one", "benchmarks/two"]
    assert list(map(str, find_workflows("mine, two", tmp_path))) == ["mine", "benchmarks/two"]
    assert list(map(str, find_workflows("streams", tmp_path))) == ["benchmarks/streams"]
    with pytest.raises(ChironError, match="no workflow folder"):
        find_workflows("three", tmp_path)


def test_the_stored_command_does_not_say_where_results_were_written(monkeypatch):
    typed = ["chiron", "evaluate", "runtime", "-o", "/home/me/out", "--part", "no ops"]
    monkeypatch.setattr(sys, "argv", typed)
    assert command_line() == "chiron evaluate runtime --part 'no ops'"
