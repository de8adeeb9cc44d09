"""`chiron evaluate prediction` measures in turns, and goes on where it was stopped."""

from __future__ import annotations

import json
import re
import signal

import psutil
import pytest

from chiron.deployment.launcher import Launcher
from chiron.evaluation.bench.machine import Target, this_machine
from chiron.evaluation.commands import prediction
from chiron.evaluation.commands.options import FolderFaults
from chiron.evaluation.prediction.rows import MeasuredRow, RowSettings, TimedRequest
from chiron.openfaas.client import Gateway
from chiron.workflow.errors import ChironError

ARGUMENTS = (
    "evaluate", "prediction", "small", "--local", "-o", "found", "--plans=1", "--samples=50",
    "--no-baselines", "--platform=platform.json",
)  # fmt: skip


@pytest.fixture
def rows(artefacts, tmp_path):
    """Reads the rows; the folder has a profile already, so that no test waits for profiling."""
    folder = tmp_path / "found" / "prediction-rows"
    folder.mkdir(parents=True)
    (folder / "small.profile.json").write_text((tmp_path / "profile.json").read_text())
    return lambda: (folder / "small.rows.jsonl").read_text().splitlines()


@pytest.mark.slow
def test_a_stop_leaves_nothing_running_and_the_next_call_goes_on(start, chiron, rows):
    running = start(*ARGUMENTS)
    running.wait_for(re.compile(r"(small pool: measuring)"))
    below = psutil.Process(running.pid).children(recursive=True)
    assert below
    assert running.end(signal.SIGTERM) == 128 + signal.SIGTERM
    _, alive = psutil.wait_procs(below, timeout=60)
    assert alive == []
    first = rows()
    assert [json.loads(row)["plan"]["wraps"][0]["mechanism"] for row in first] == ["fork"]

    then = chiron(*ARGUMENTS, "--json")
    assert then.status == 0, then.stderr
    assert "small fork: measuring" not in then.stderr
    assert rows()[:1] == first
    assert [each["mechanism"] for each in then.json["workflows"]] == ["fork", "pool"]


def test_workflows_and_mechanisms_take_turns(
    write_folder, profile_of, platform, tmp_path, monkeypatch
):
    folders = []
    for name in ("one", "two"):
        document = {"name": name, "tasks": {f"t{n}": "greet" for n in range(6)}, "edges": []}
        code = {"greet": "def handle(req):\n    return req\n"}
        folders.append(write_folder(tmp_path / name, document, code, {}))
    turns = []

    def measure_batch(folder, place, plans, leftovers, *, profile, samples):
        turns.append((folder.workflow.name, next(iter(plans.values())).mechanisms, len(plans)))
        request = TimedRequest(latency_ms=1.0, probe_ms=1.0)
        return [MeasuredRow(plan=plan, requests=(request,)) for plan in plans.values()]

    monkeypatch.setattr(prediction, "measure_batch", measure_batch)

    def profiled(folder, *_, **__):
        return profile_of(folder.workflow)

    monkeypatch.setattr(prediction, "profile", profiled)
    monkeypatch.setattr(prediction, "target_of", lambda _: Target(provider="here"))
    launcher = Launcher(Gateway("http://127.0.0.1:1"), print)

    def measure(plans, seed=1):
        turns.clear()
        prediction.measure_rows(
            tmp_path / "rows", folders, launcher, RowSettings(samples=1, seed=seed),
            FolderFaults(()), this_machine(), plans=plans, platform=platform,
        )  # fmt: skip
        return turns

    places = [("one", "fork"), ("one", "pool"), ("two", "fork"), ("two", "pool")]
    assert measure(9) == [(*place, count) for count in (8, 1) for place in places]
    assert measure(9) == []
    assert measure(11) == [(*place, 2) for place in places]
    with pytest.raises(ChironError, match="seed 1, not 2: name another folder"):
        measure(9, seed=2)
