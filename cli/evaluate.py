"""`chiron evaluate`: what is measured and compared, one command each."""

from __future__ import annotations

import click

from cli.main import LazyGroup

_MODULES = {
    "all": ("cli.evaluate_all", "All of these, and one report."),
    "cost": ("cli.evaluate_figure:cost", "What requests cost by the paper's prices."),
    "cpu": ("cli.evaluate_figure:cpu", "CPU time that requests take."),
    "dashboard": ("cli.evaluate_dashboard", "How fast the dashboard is in a browser."),
    "latency": ("cli.evaluate_figure:latency", "Planners of workflows, measured in turn."),
    "memory": ("cli.evaluate_figure:memory", "Memory of the sandboxes."),
    "slo": ("cli.evaluate_figure:slo", "How often requests miss the SLO."),
    "throughput": ("cli.evaluate_figure:throughput", "Maximum throughput, and latency under load."),
    "prediction": ("cli.evaluate_prediction", "How wrong predictions are."),
    "profiler": ("cli.evaluate_profiler", "How right profiles of known functions are."),
    "runtime": ("cli.evaluate_runtime", "What the wrap runtime costs."),
    "scheduler": ("cli.evaluate_scheduler", "How good and how fast the scheduler's search is."),
    "workflows": ("cli.evaluate_workflows", "Scientific workflows of fifty tasks."),
}


@click.group("evaluate", cls=LazyGroup, modules=_MODULES)
def command() -> None:
    """Measure planners against each other, and the predictor against measurements.

    \b
    Example:
      chiron evaluate all --local --quick
    """
