"""`chiron evaluate`: what is measured and compared, one command each."""

from __future__ import annotations

import click

from chiron.cli.main import LazyGroup

_MODULES = {
    "all": ("chiron.cli.evaluate_all", "All of these, and one report."),
    "cost": ("chiron.cli.evaluate_figure:cost", "What requests cost by the paper's prices."),
    "cpu": ("chiron.cli.evaluate_figure:cpu", "CPU time that requests take."),
    "dashboard": ("chiron.cli.evaluate_dashboard", "How fast the dashboard is in a browser."),
    "gain": ("chiron.cli.evaluate_gain", "A workflow as it is and as chiron deploys it."),
    "latency": ("chiron.cli.evaluate_figure:latency", "Planners of workflows, measured in turn."),
    "memory": ("chiron.cli.evaluate_figure:memory", "Memory of the sandboxes."),
    "slo": ("chiron.cli.evaluate_figure:slo", "How often requests miss the SLO."),
    "throughput": (
        "chiron.cli.evaluate_figure:throughput",
        "Maximum throughput, and latency under load.",
    ),
    "prediction": ("chiron.cli.evaluate_prediction", "How wrong predictions are."),
    "profiler": ("chiron.cli.evaluate_profiler", "How right profiles of known functions are."),
    "runtime": ("chiron.cli.evaluate_runtime", "What the wrap runtime costs."),
    "scheduler": (
        "chiron.cli.evaluate_scheduler",
        "How good and how fast the scheduler's search is.",
    ),
    "workflows": ("chiron.cli.evaluate_workflows", "Scientific workflows of fifty tasks."),
}


@click.group("evaluate", cls=LazyGroup, modules=_MODULES)
def command() -> None:
    """Measure planners against each other, and the predictor against measurements.

    \b
    Example:
      chiron evaluate all --local --quick
    """
