"""Options and tables about load, for `predict` and `schedule`."""

from __future__ import annotations

import click

from chiron.cli.output import progress, table
from chiron.scheduler.prices import Cost
from chiron.workflow.load import Load, LoadPrediction, LoadTime
from chiron.workflow.plan import Plan


def load_of(rate: float | None, clients: int | None) -> Load | None:
    if rate is not None and clients is not None:
        raise click.UsageError("name either --rate or --clients")
    return None if rate is None and clients is None else Load(per_s=rate, clients=clients)


def show_load(plan: Plan, found: LoadPrediction, cost: Cost | None = None) -> None:
    """Show the latency's percentiles, or that the load saturates the plan, and the capacity."""
    load = found.load
    rows = [[f"p{each.percentile:g}", *_cells(each)] for each in found.within]
    if found.mean:
        rows.append(["mean", *_cells(found.mean)])
    if rows:
        columns = ["of requests", "predicted ms", "low", "high"]
        table(f"{plan.workflow} at {load.shown}, {plan.mechanisms}", columns, rows)
    else:
        progress(f"{load.shown} is more than the plan can do: the queue grows; add replicas")
    if any(each.high_ms is None for each in found.within):
        progress("-: if all takes as long as it may, the queue grows without end")
    most = found.saturation
    replicas = ", ".join(f"{name} {count}" for name, count in found.replicas.items())
    rows = [
        ["saturation", f"{most.per_s:.1f}/s ({most.low_per_s:.1f} to {most.high_per_s:.1f})"],
        ["throughput", f"{found.throughput_per_s:.1f}/s"],
        ["CPU of a request", f"{found.cpu_ms:.2f} ms"],
        ["memory", f"{found.memory_mib} MiB"],
        ["replicas", replicas],
        ["CPUs", str(plan.allocated_cpus)],
        *([["cost", cost.shown]] if cost else []),
    ]
    table("under load", ["figure", "predicted"], rows, words=(0, 1))


def _cells(time: LoadTime) -> list[str]:
    """Format a time and its range; a dash if the range is infinite."""
    most = "-" if time.high_ms is None else f"{time.high_ms:.2f}"
    return [f"{time.ms:.2f}", f"{time.low_ms:.2f}", most]
