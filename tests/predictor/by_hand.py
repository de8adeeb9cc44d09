"""Workflows of one-letter tasks, and plans of them, written by hand."""

from __future__ import annotations

from typing import Any

from chiron.workflow.model import Task, Workflow
from chiron.workflow.plan import Plan, Wrap

#: a, b and c in parallel, then d.
WORKFLOW = Workflow(
    "demo", (*(Task(t, t, None) for t in "abc"), Task("d", "d", ("a", "b", "c"))), "d"
)
ALONE = Workflow("demo", (Task("a", "a", None),), "a")
FUNCTIONS = {"a": "cpu 10", "b": "cpu 4", "c": "block 3", "d": "cpu 2"}

#: The processes of every wrap, each as a string of its one-letter tasks.
Wraps = list[list[str]]
#: a and b in two processes of wrap 1, c in wrap 2, then d in wrap 1.
TWO_WRAPS: Wraps = [["ad", "b"], ["c"]]


def plan(wraps: Wraps, cpus: int = 2, mechanism: str = "fork", **fields: Any) -> Plan:
    """A plan of these wraps, all of so many CPUs."""
    made = [
        Wrap(
            name=f"demo-wrap{number}",
            cpus=cpus,
            memory_mib=64,
            mechanism=mechanism,
            processes=tuple(map(tuple, processes)),
        )
        for number, processes in enumerate(wraps, start=1)
    ]
    known = {"format": 2, "workflow": "demo", "planner": "pgp"}
    return Plan(**(known | {"wraps": tuple(made), "cpus": cpus * len(made)} | fields))
