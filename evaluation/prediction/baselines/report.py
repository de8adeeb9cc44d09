"""The baselines' errors on measured plans, beside those of the predictor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evaluation.prediction.baselines.learning import Baseline, HeldOut, groups, predict_held_out
from evaluation.prediction.baselines.registry import available
from evaluation.prediction.baselines.samples import Sample
from evaluation.prediction.distribution import Distribution
from workflow.documents import Document
from workflow.plan import Mechanism

#: Why nothing can be learnt where nothing is left to learn from.
_TOO_FEW = {
    "workflow": "all plans are of one workflow: add another, or use --held-out structure",
    "structure": "all plans have one structure: measure more --plans",
}


class BaselineReport(Document):
    """What the baselines predicted, always without what was held out.

    Attributes
    ----------
    settings
        Baseline -> what was held out -> the settings that were chosen without it.
    not_run
        Baseline -> why it did not run, with the line that mends it.
    """

    held_out: HeldOut
    distributions: tuple[Distribution, ...]
    settings: dict[str, dict[str, str]]
    not_run: dict[str, str]


def compare_baselines(
    samples: Sequence[Sample], held_out: HeldOut, progress: Callable[[str], None]
) -> BaselineReport:
    """Train and test every baseline whose library is installed, and name the others."""
    runnable, not_run = available()
    if len(groups(samples, held_out)) < 2:
        reason = _TOO_FEW[held_out]
        not_run |= {baseline.name: reason for baseline in runnable}
        runnable = []
    distributions: list[Distribution] = []
    settings = {}
    for baseline in runnable:
        errors, settings[baseline.name] = _errors(baseline, samples, held_out, progress)
        distributions += _distributions(baseline.name, samples, errors)
    return BaselineReport(
        held_out=held_out,
        distributions=tuple(distributions),
        settings=settings,
        not_run=not_run,
    )


def _errors(
    baseline: Baseline,
    samples: Sequence[Sample],
    held_out: HeldOut,
    progress: Callable[[str], None],
) -> tuple[list[float], dict[str, str]]:
    learned = predict_held_out(baseline, samples, held_out, progress)
    errors = [
        round(latency_ms / sample.measured_ms - 1, 6)
        for latency_ms, sample in zip(learned.predicted_ms, samples, strict=True)
    ]
    return errors, learned.chosen


def _distributions(
    name: str, samples: Sequence[Sample], errors: Sequence[float]
) -> list[Distribution]:
    places: dict[tuple[str, Mechanism], list[float]] = {}
    for sample, error in zip(samples, errors, strict=True):
        places.setdefault((sample.workflow, sample.mechanism), []).append(error)
    return [
        Distribution(workflow=workflow, mechanism=mechanism, predictor=name, errors=tuple(listed))
        for (workflow, mechanism), listed in places.items()
    ]
