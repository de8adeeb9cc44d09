"""The CPU time of a wrap is that of all its processes."""

from __future__ import annotations

import os
from pathlib import Path

from wrap.observe.metrics import tree_cpu_s


def process(proc: Path, number: int, ticks: tuple[int, int, int, int], *children: int) -> None:
    """A process with a name that looks like fields, and threads that have started the children."""
    place = proc / str(number)
    before = "S " + " ".join(["0"] * 10)
    place.mkdir()
    (place / "stat").write_text(f"{number} (a) b) {before} {' '.join(map(str, ticks))} 20 0 1")
    for thread in (number, number + 1000):
        (place / "task" / str(thread)).mkdir(parents=True)
    half = len(children) // 2
    for thread, its in ((number, children[:half]), (number + 1000, children[half:])):
        (place / "task" / str(thread) / "children").write_text("".join(f"{c} " for c in its))


def test_it_is_that_of_a_process_and_its_descendants_with_those_that_ended(tmp_path: Path) -> None:
    process(tmp_path, 1, (100, 20, 3, 4), 2, 3)
    process(tmp_path, 2, (1000, 0, 0, 0), 4)
    process(tmp_path, 4, (5, 5, 0, 0))
    process(tmp_path, 9, (7777, 0, 0, 0))  # of somebody else; 3 has just ended
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    assert tree_cpu_s(1, tmp_path) == 1137 / ticks_per_s
