"""`chiron evaluate`: what is measured and compared, one command each."""

from __future__ import annotations

import click

from cli.lazy_group import LazyGroup

_MODULES = {
    "all": ("cli.evaluate_all", "All of these, and one report."),
    "cost": ("cli.evaluate_cost", "What requests cost by the paper's prices."),
    "cpu": ("cli.evaluate_cpu", "CPU time that requests take."),
    "latency": ("cli.evaluate_latency", "Deployment models of workflows, measured in turn."),
    "memory": ("cli.evaluate_memory", "Memory of the sandboxes."),
    "slo": ("cli.evaluate_slo", "How often requests miss the SLO."),
    "throughput": ("cli.evaluate_throughput", "Maximum throughput, and latency under load."),
    "prediction": ("cli.evaluate_prediction", "How wrong predictions are."),
    "profiler": ("cli.evaluate_profiler", "How right profiles of known functions are."),
    "runtime": ("cli.evaluate_runtime", "What the wrap runtime costs."),
    "scheduler": ("cli.evaluate_scheduler", "How good and how fast the scheduler's search is."),
    "predictor-speed": ("cli.evaluate_predictor_speed", "How long a prediction takes."),
}


@click.group("evaluate", cls=LazyGroup, modules=_MODULES)
def command() -> None:
    """Measure deployment models against each other, and the predictor against measurements.

    \b
    Example:
      chiron evaluate all --local --quick
    """
