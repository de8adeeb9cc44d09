"""A profile tells how far slow functions are, and in which run a function failed."""

from __future__ import annotations

import pytest

from chiron.deployment.local_launcher import LocalLauncher
from chiron.profiler.profile import IncompleteProfileError, profile
from chiron.profiler.progress import SlowRuns

pytestmark = pytest.mark.usefixtures("briefly_profiled")

SOUND = "def handle(req):\n    return req\n"
SECOND_FAILS = """\
calls = []


def handle(req):
    calls.append(1)
    if len(calls) == 2:
        raise ValueError("out of luck")
    return req
"""


def test_after_every_ten_seconds_of_runs_there_is_a_line():
    lines = []
    slow = SlowRuns("f", lines.append, lambda latency_ms: 9 if latency_ms > 5000 else 30)
    for latency_ms in (4000, 4000, 4000, 6000):
        slow.ran(latency_ms)
    slow.ran(6000, 2)
    assert lines == [
        "profiling f: 3 of 30 runs, about 108 s left",
        "profiling f: 6 of 9 runs, about 18 s left",
    ]
    slow.ran(6000, 4)
    assert lines[2:] == ["profiling f: 10 of 10 runs, about 0 s left"], "it varied"


def test_every_run_of_a_slow_function_is_counted(write_folder, tmp_path, monkeypatch):
    monkeypatch.setattr("chiron.profiler.progress._SILENT_MS", 0.0)  # as if each was slow
    folder = write_folder(tmp_path, {"tasks": {"a": "slow"}, "edges": []}, {"slow": SOUND})
    lines = []
    profile(folder, LocalLauncher(str), samples=4, progress=lines.append, probe_alone=True)
    told = [line for line in lines if "left" in line]
    own = [line.split(",")[0] for line in told if "forked" not in line]
    (most,) = {line.split()[4] for line in own[:9]}
    assert own[:9] == [
        f"profiling slow: {done} of {most} runs"
        for done in (1, 2, 3, 4, 5, 6, 7, *((9, 11) if most == "11" else (9,)))
    ]
    assert "profiling slow in forked processes: 7 of 7 runs, about 0 s left" in told
    assert [line for line in lines if "of the workflow" in line] == [
        f"slow took 0 s in run {number} of 3 of the workflow with payload.json"
        for number in (1, 2, 3)
    ]


def test_a_failure_says_in_which_run_it_was(write_folder, tmp_path):
    folder = write_folder(
        tmp_path, {"tasks": {"a": "faulty"}, "edges": []}, {"faulty": SECOND_FAILS}
    )
    with pytest.raises(IncompleteProfileError) as caught:
        profile(folder, LocalLauncher(str), samples=4, probe_alone=True)
    said = "in run 2 of 3 of the workflow with payload.json; it answered before: let it retry"
    assert said in caught.value.message
    assert "ValueError: out of luck (handler.py:7)" in caught.value.message
