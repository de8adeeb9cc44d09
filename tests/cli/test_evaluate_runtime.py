"""`chiron evaluate runtime` shows each figure beside its goal."""

from __future__ import annotations

from cli import evaluate_runtime
from evaluation.bench.machine import this_machine
from evaluation.runtime.report import Figure, RuntimeReport


def test_its_help_has_an_example(chiron):
    result = chiron("evaluate", "runtime", "--help")
    assert result.status == 0
    assert "Example:\n    chiron evaluate runtime --quick" in result.stdout


def test_goals_that_are_missed_are_named(capsys):
    rows = {"quick": (1.0, 2.0), "slow": (3.0, 2.0), "free": (4.0, None)}
    figures = tuple(
        Figure(name=name, unit="ms", median=ms, low=ms, high=ms, samples=5, goal=goal)
        for name, (ms, goal) in rows.items()
    )
    report = RuntimeReport(machine=this_machine(), command="chiron", figures=figures)
    evaluate_runtime._show(report)
    shown = capsys.readouterr().err
    assert "medians of 5 rounds" in shown
    assert "goals missed: slow" in shown
    assert [line.split()[-1] for line in shown.splitlines() if "≤" in line] == ["yes", "no"]
