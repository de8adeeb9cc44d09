"""Plans of a workflow called demo, written by hand."""

from __future__ import annotations

from chiron.workflow.plan import Plan, Wrap


def plan(wraps: list[list[str]], trigger: str = "data", mechanism: str = "pool") -> Plan:
    made = tuple(
        Wrap(
            name=f"demo-wrap{number}",
            cpus=2,
            memory_mib=64,
            mechanism=mechanism,
            processes=tuple(map(tuple, processes)),
        )
        for number, processes in enumerate(wraps, start=1)
    )
    return Plan(
        format=2, workflow="demo", planner="pgp", trigger=trigger, wraps=made, cpus=2 * len(made)
    )
