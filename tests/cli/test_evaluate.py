"""The verbs of `chiron evaluate` that measure deployments, as a user runs them."""

from __future__ import annotations

import json
import re
import signal

import psutil
import pytest

from chiron.evaluation.bench.machine import RESULTS, this_machine
from chiron.evaluation.commands import options as evaluate_options
from chiron.evaluation.commands.all import find_workflows
from chiron.workflow.documents import dump
from chiron.workflow.errors import ChironError
from tests.rows import each_row


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


@each_row(
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
