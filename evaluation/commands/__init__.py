"""`chiron evaluate`: the group of the commands that measure and compare."""

from __future__ import annotations

import click

from chiron.cli.main import LazyGroup

_MODULES = {
    name: (f"{__name__}.{module}", text)
    for name, module, text in (
        ("all", "all", "All figures, predictions, plans and costs, and one report."),
        ("cost", "figure:cost", "What requests cost by the paper's prices."),
        ("cpu", "figure:cpu", "CPU time that requests take."),
        ("dashboard", "dashboard", "How fast the dashboard is in a browser."),
        ("gain", "gain", "A workflow as it is and as chiron deploys it."),
        ("latency", "figure:latency", "Planners of workflows, measured in turn."),
        ("memory", "figure:memory", "Memory of the sandboxes."),
        ("slo", "figure:slo", "How often requests miss the SLO."),
        ("throughput", "figure:throughput", "Maximum throughput, and latency under load."),
        ("prediction", "prediction", "How wrong predictions are."),
        ("profiler", "profiler", "How right profiles of known functions are."),
        ("runtime", "runtime", "What the wrap runtime costs."),
        ("scheduler", "scheduler", "How good and how fast the scheduler's search is."),
        ("workflows", "workflows", "Any workflow by planner, trigger and path."),
    )
}


@click.group("evaluate", cls=LazyGroup, modules=_MODULES)
def command() -> None:
    """Measure planners against each other, and the predictor against measurements.

    \b
    Example:
      chiron evaluate all --local --quick
    """
