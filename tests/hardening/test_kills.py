"""Under load, with processes killed at random: right answers, named errors, and nothing leaks."""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from faults import Gauge, Killer, Look, recoveries
from hostile import Hostile
from load import Load, Tally, inputs_of
from place import ANSWERING, DAEMON, WORKFLOW, open_place

from chiron.evaluation.bench.machine import Measured, this_machine
from chiron.workflow.folder import parse_workflow

CLIENTS = 3
#: How long a soak takes unless CHIRON_SOAK_SECONDS says otherwise.
SOAK_S = int(os.environ.get("CHIRON_SOAK_SECONDS", "1800"))
SHORT_S = 6
BACK_S = 60


@pytest.fixture
def folder():
    """One with a short name: in it are sockets, whose paths may have a hundred characters."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def told(seconds: float, tally: Tally, killer: Killer, looks: list[Look], first: float) -> dict:
    """The figures of a run."""
    recovered = recoveries(killer.kills, tally.samples, first)
    warm = looks[len(looks) // 10]
    figures = {
        "seconds": seconds,
        "requests": len(tally.samples),
        "right": sum(sample.right for sample in tally.samples),
        "wrong": len(tally.wrong),
        "lost": len(tally.lost),
        "errors": dict(sorted(tally.errors.items())),
        "jobs": dict(sorted(tally.jobs.items())),
        "services away": tally.away,
        "kills": dict(Counter(kill.kind for kill in killer.kills)),
    }
    for kind in sorted({kill.kind for kill in recovered}):
        each = [recovery for kill, recovery in recovered.items() if kill.kind == kind]
        figures[f"after the kill of a {kind}"] = {
            "first right answer": spread([recovery.answer_s for recovery in each]),
            "full speed": spread([recovery.full_speed_s for recovery in each]),
        }
    for name in ("descriptors", "threads", "rss", "processes"):
        figures[f"{name}, warm and in the end"] = [getattr(warm, name), getattr(looks[-1], name)]
    return figures


def spread(seconds: list[float]) -> dict[str, float]:
    """The figures of some durations."""
    taken = sorted(seconds)
    return {
        "measured": len(taken),
        "within 2 s": sum(each <= 2 for each in taken),
        "median s": round(statistics.median(taken), 2),
        "p90 s": round(taken[int(0.9 * (len(taken) - 1))], 2),
        "longest s": round(taken[-1], 2),
    }


def all_are_back(tally: Tally, targets: list[str]) -> None:
    """Wait until every target has answered a few times in a row as it should."""
    begin = time.monotonic()
    for target in targets:
        while True:
            since = [s.right for s in tally.samples if s.target == target and s.start > begin]
            if since[-3:] == [True] * 3:
                break
            assert time.monotonic() < begin + BACK_S, f"{target} does not come back"
            time.sleep(0.1)


def daemons_end() -> bool:
    """Whether all that commands leave behind ends, when no request runs."""
    end = time.monotonic() + BACK_S
    while any(DAEMON in command for command in _commands()):
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def _commands() -> Iterator[list[str]]:
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            yield process.cmdline()


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(SHORT_S, marks=pytest.mark.slow),
        pytest.param(SOAK_S, marks=[pytest.mark.soak, pytest.mark.timeout(SOAK_S + 300)]),
    ],
)
@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_whatever_is_killed_no_answer_is_wrong_and_nothing_leaks(
    seconds, folder, profile_of, platform, all_gone
):
    command = f"CHIRON_SOAK_SECONDS={seconds} pytest -m soak -s tests/hardening/test_kills.py"
    origin = Measured(machine=this_machine(), command=command).model_dump()
    parsed = parse_workflow({**WORKFLOW, "name": "soak"})
    inputs = inputs_of({**WORKFLOW, "name": "soak"}, profile_of(parsed), platform)
    with open_place(folder) as place:
        load = Load(place.url, place.services.url, list(ANSWERING))
        killer = Killer(place, int(os.environ.get("CHIRON_SOAK_SEED", "8")))
        gauge = Gauge(place)
        seen = place.processes()
        hostile = Hostile(place)
        with load.running(CLIENTS, inputs) as tally, hostile.running():
            all_are_back(tally, [*ANSWERING, "services"])
            time.sleep(seconds / 20)  # what it is like without kills
            first = time.monotonic()
            with gauge.running():
                killer.keep_killing(first + seconds, seen)
            all_are_back(tally, [*ANSWERING, "services"])
        looks = [*gauge.looks, gauge.look()]
        figures = told(seconds, tally, killer, looks, first)
        attacks = {"attacks": dict(hostile.tried), "got through": hostile.got_through}
        print(json.dumps({**origin, **figures, **attacks}, indent=1))
        assert daemons_end()
    assert hostile.got_through == []
    assert min(hostile.tried.values()) > 0
    assert tally.wrong == []
    assert tally.lost == []
    assert not [fault for fault in tally.errors if "timeout" in fault or "internal" in fault]
    assert all_gone(seen, reaped=False) == set()
    assert not list(place.scratch.glob("chiron-gateway-*"))
    warm, last = looks[: len(looks) // 10 + 1], looks[-1]
    assert last.descriptors <= max(look.descriptors for look in warm) + 20
    assert last.threads <= max(look.threads for look in warm) + 20
    assert last.processes <= max(look.processes for look in warm) + 10
    assert last.rss <= 1.5 * max(look.rss for look in warm)
