"""`chiron evaluate runtime` shows each figure with its spread."""

from __future__ import annotations

from chiron.evaluation.bench.machine import this_machine
from chiron.evaluation.commands import runtime
from chiron.evaluation.runtime.rounds import Figure, RuntimeReport


def test_systems_are_shown_beside_each_other(capsys):
    figures = tuple(
        Figure(name=name, system=system, unit="ms", median=2.0, low=1.5, high=3.25, samples=5)
        for name, system in (("a no-op", "wrap"), ("an array", "Ray"), ("a no-op", "Ray"))
    )
    runtime.show(RuntimeReport(machine=this_machine(), command="chiron", figures=figures))
    lines = [line.split() for line in capsys.readouterr().err.splitlines()]
    cell = ["2.00", "(1.50-3.25)"]
    assert ["what", "wrap", "Ray"] in lines
    assert ["a", "no-op,", "ms", *cell, *cell] in lines
    assert ["an", "array,", "ms", *cell] in lines
