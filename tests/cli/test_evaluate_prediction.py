"""`chiron evaluate prediction` measures in turns, and goes on where it was stopped."""

from __future__ import annotations

import json
import re
import signal

import psutil
import pytest

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
