"""Profiles with several payloads: each as it is, and the mix as their mean."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from chiron.deployment.local_launcher import LocalLauncher
from chiron.profiler.function_profile import mixed
from chiron.profiler.profile import profile
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.profile import FunctionProfile, Period

MakeFolder = Callable[..., WorkflowFolder]


def function(text: str, **facts: object) -> FunctionProfile:
    words, start, periods = text.split(), 0.0, []
    for kind, duration in zip(words[::2], map(float, words[1::2]), strict=True):
        periods.append(Period(kind=kind, start_ms=start, duration_ms=duration))
        start += duration
    return FunctionProfile(latency_ms=start, periods=tuple(periods), **facts)


def test_one_payload_is_its_own_mix() -> None:
    one = function("cpu 3 block 2")
    assert mixed([one], [7.0]) is one


def test_a_mix_does_each_kind_of_thing_for_the_mean_of_it_by_weight() -> None:
    small, large = function("cpu 1 block 50"), function("cpu 4 block 50 cpu 77")
    mix = mixed([small, large], [3.0, 1.0])
    assert mix.latency_ms == pytest.approx(0.75 * 51 + 0.25 * 131)
    assert mix.time_ms("cpu") == pytest.approx(0.75 * 1 + 0.25 * 81)
    assert mix.time_ms("block") == pytest.approx(50)
    assert [period.kind for period in mix.periods] == ["cpu", "block", "cpu"]


def test_a_mix_does_what_only_the_faster_payload_does() -> None:
    mix = mixed([function("block 4"), function("cpu 10")], [1.0, 1.0])
    assert {kind: mix.time_ms(kind) for kind in ("cpu", "native", "block")} == {
        "cpu": 5.0,
        "native": 0.0,
        "block": 2.0,
    }


def test_a_mix_needs_the_memory_of_the_largest_and_has_the_facts_of_all() -> None:
    small = function("cpu 1", memory_mib=2.0, idle_mib=30.0, ports=(80,), files_read=("a", "b"))
    large = function("cpu 9", memory_mib=60.0, idle_mib=31.0, ports=(81,), files_read=("b", "c"))
    mix = mixed([small, large], [9.0, 1.0])
    assert (mix.memory_mib, mix.idle_mib) == (61.0, 30.0)
    assert (mix.ports, mix.files_read) == ((80, 81), ("a", "b", "c"))
    assert mix.spread_ms == (1.0, 9.0)


@pytest.mark.parametrize(
    ("each", "most"), [((70.0, 64.0), 70.0), ((None, 64.0), 64.0), ((None, None), None)]
)
def test_a_mix_needs_the_most_memory_in_a_forked_process(each, most) -> None:
    mix = mixed([function("cpu 1", forked_mib=mib) for mib in each], [1.0, 1.0])
    assert mix.forked_mib == most


SLEEPS = """\
import json
import time


def handle(req):
    asked = json.loads(req)
    time.sleep(asked["ms"] / 1000)
    return {"ms": asked["ms"], "at": time.time_ns()}
"""


def test_a_workflow_is_profiled_with_each_payload_and_their_weights(
    write_folder: MakeFolder, tmp_path: Path
) -> None:
    folder = write_folder(tmp_path, {"tasks": {"a": "sleeps"}}, {"sleeps": SLEEPS}, {})
    (tmp_path / "payload.json").unlink()
    (tmp_path / "payloads").mkdir()
    for name, milliseconds in (("long", 80), ("short", 8)):
        (tmp_path / "payloads" / f"{name}.json").write_text(json.dumps({"ms": milliseconds}))
    constraints = {"format": 1, "weights": {"payloads/short.json": 3}}
    (tmp_path / "constraints.json").write_text(json.dumps(constraints))

    found = profile(folder, LocalLauncher(print), samples=8, probe_alone=True)

    long, short = found.payloads
    assert [(each.name, each.weight) for each in found.payloads] == [
        ("payloads/long.json", 1.0),
        ("payloads/short.json", 3.0),
    ]
    assert 70 <= long.functions["sleeps"].latency_ms < 120
    assert 4 <= short.functions["sleeps"].latency_ms < 40  # less what tracing seemed to take
    parts = [each.functions["sleeps"].latency_ms for each in found.payloads]
    mean_ms = (parts[0] + 3 * parts[1]) / 4
    assert found.functions["sleeps"].latency_ms == pytest.approx(mean_ms, abs=0.01)
    for payload in folder.payloads():
        answer = found.answer_to(payload.content)
        assert answer is not None and answer.varies == ("$.at",)
    assert json.loads(str(long.answer.output))["ms"] == 80
