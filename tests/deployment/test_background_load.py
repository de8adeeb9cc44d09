"""What other programs have of the cores, from a load that is known."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil
import pytest

from chiron.deployment.background_load import (
    BUSY,
    await_quiet,
    busy_line,
    disturbance,
    mean_share,
    others_share,
)


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> list[list[float]]:
    """What every core is busy in each look, in percent; this process may use cores 1 and 3."""
    looks: list[list[float]] = []
    monkeypatch.setattr(psutil, "cpu_percent", lambda *_, percpu: looks.pop(0))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 3})
    return looks


def test_only_the_cores_that_this_process_may_use_count(cores: list[list[float]]) -> None:
    cores.append([100.0, 20.0, 100.0, 60.0])
    assert others_share() == pytest.approx(0.4)


def test_a_container_that_is_shown_its_own_cores_alone_has_all_of_them(
    cores: list[list[float]],
) -> None:
    cores.append([50.0])
    assert others_share() == pytest.approx(0.5)


def test_where_the_kernel_says_nothing_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(*_: object, **__: object) -> None:
        raise PermissionError("/proc/stat")

    monkeypatch.setattr(psutil, "cpu_percent", unreadable)
    assert others_share() is None
    assert mean_share([None, None]) is None
    assert disturbance(None) is None


def test_looks_that_told_something_make_one_figure() -> None:
    assert mean_share([None, 0.25, 0.5, 0.0]) == 0.25


@pytest.mark.parametrize("share", [0.0, BUSY / 2])
def test_a_quiet_machine_is_worth_no_word(share: float) -> None:
    assert disturbance(share) is None
    assert busy_line(share) is None


def test_a_busy_machine_is_told_with_the_share_and_what_predictions_are_for() -> None:
    line = busy_line(0.62)
    assert line is not None
    assert "62%" in line and "idle machine" in line


def test_quiet_is_waited_for_but_not_forever(
    cores: list[list[float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    cores += [[0.0, 90.0, 0.0, 90.0], [0.0, 2.0, 0.0, 2.0], [0.0, 90.0, 0.0, 90.0]]
    await_quiet(60.0)
    assert len(cores) == 1
    await_quiet(0.0)
    assert cores == []


def test_a_program_that_computes_all_the_time_is_seen() -> None:
    spinning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        share = others_share(0.5)
    finally:
        spinning.kill()
        spinning.wait()
    if others_share() is None:
        pytest.skip("the kernel does not say how busy its cores are")
    assert share is not None and share > 0.3 / len(os.sched_getaffinity(0))
