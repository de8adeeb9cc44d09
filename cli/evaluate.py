"""`chiron evaluate`: what is measured and compared, one command each."""

from __future__ import annotations

import click

from cli.lazy_group import LazyGroup

_MODULES = {
    "latency": ("cli.evaluate_latency", "Deployment models of one workflow, measured in turn."),
    "prediction": ("cli.evaluate_prediction", "How wrong predictions are."),
    "profiler": ("cli.evaluate_profiler", "How right profiles of known functions are."),
    "predictor-speed": ("cli.evaluate_predictor_speed", "How long a prediction takes."),
}


@click.group("evaluate", cls=LazyGroup, modules=_MODULES)
def command() -> None:
    """Measure deployment models against each other, and the predictor against measurements.

    \b
    Example:
      chiron evaluate latency benchmarks/finra --slo 100ms --local
    """
