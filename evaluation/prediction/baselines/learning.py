"""The baselines, their training, and their tests on held-out workflows or structures."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Literal, NamedTuple

from chiron.evaluation.optional import missing
from chiron.evaluation.prediction.baselines.features import (
    Sample,
    delay_ms,
    latency_ms,
    plan_features,
)
from chiron.evaluation.prediction.errors import Distribution
from chiron.workflow.documents import Document

#: A trained model: predicts the latencies of samples in ms, without their measurements.
Model = Callable[[Sequence[Sample]], list[float]]
HeldOut = Literal["workflow", "structure"]
#: Returns the name of a sample's group; folds do not divide groups.
Group = Callable[[Sample], str]

#: Folds if structures are held out.
STRUCTURE_FOLDS = 5
#: Folds of the training samples that choose the settings.
INNER_FOLDS = 3
#: The baselines that run if their library is installed.
BASELINES = ("RFR", "LSTM", "GNN")
#: The reason why no baseline runs if all samples are of one group.
_TOO_FEW = {
    "workflow": "all plans are of one workflow: add another, or use --held-out structure",
    "structure": "all plans have one structure: measure more --plans",
}
_TREES, _SEED = 300, 1


class Candidate(NamedTuple):
    """One way to train a baseline, and its name in a report."""

    settings: str
    fit: Callable[[Sequence[Sample]], Model]


class Baseline(NamedTuple):
    """A kind of model and its candidate settings."""

    name: str
    candidates: tuple[Candidate, ...]


class Fold(NamedTuple):
    """Indices of the samples to train on, and of the samples to predict."""

    train: list[int]
    test: list[int]


def predict_held_out(
    baseline: Baseline,
    samples: Sequence[Sample],
    held_out: HeldOut,
    progress: Callable[[str], None],
) -> tuple[list[float], dict[str, str]]:
    """Predict each sample's latency by a model trained without its workflow or structure.

    Returns the latencies and, for each fold, the held-out part and the settings chosen without it.
    Raises ValueError if all samples are of one workflow (or structure).
    """
    predicted_ms = [math.nan] * len(samples)
    chosen = {}
    most = len(samples) if held_out == "workflow" else STRUCTURE_FOLDS
    for number, fold in enumerate(folds(samples, attrgetter(held_out), most), start=1):
        name = f"part {number} of the structures"
        if held_out == "workflow":
            name = samples[fold.test[0]].workflow
        progress(f"training {baseline.name} without {name}")
        train = [samples[index] for index in fold.train]
        candidate = choose(baseline, train)
        model = candidate.fit(train)
        for index, latency in zip(fold.test, model([samples[i] for i in fold.test]), strict=True):
            predicted_ms[index] = latency
        chosen[name] = candidate.settings
    return predicted_ms, chosen


def choose(baseline: Baseline, samples: Sequence[Sample]) -> Candidate:
    """Return the settings with the smallest error on inner folds of `samples`; first of equals.

    The folds hold out workflows if several, as a user's next workflow is new; else structures.
    """
    held_out: HeldOut = "workflow" if len(groups(samples, "workflow")) > 1 else "structure"
    if len(baseline.candidates) == 1 or len(groups(samples, held_out)) < 2:
        return baseline.candidates[0]
    inner = list(folds(samples, attrgetter(held_out), INNER_FOLDS))

    def error(candidate: Candidate) -> float:
        errors = []
        for fold in inner:
            model = candidate.fit([samples[index] for index in fold.train])
            asked = [samples[index] for index in fold.test]
            pairs = zip(model(asked), asked, strict=True)
            errors += [abs(latency / sample.measured_ms - 1) for latency, sample in pairs]
        return statistics.fmean(errors)

    return min(baseline.candidates, key=error)


def folds(samples: Sequence[Sample], group: Group, most: int) -> Iterator[Fold]:
    """Yield at most `most` folds of about equal size that divide no group.

    Raises ValueError if there is only one group: no sample would be left to train on.
    """
    members: dict[str, list[int]] = {}
    for index, sample in enumerate(samples):
        members.setdefault(group(sample), []).append(index)
    if len(members) < 2:
        raise ValueError("all samples are of one group")
    parts: list[list[int]] = [[] for _ in range(min(most, len(members)))]
    for name in sorted(members, key=lambda name: (-len(members[name]), name)):
        min(parts, key=len).extend(members[name])
    for part in parts:
        held = set(part)
        yield Fold([i for i in range(len(samples)) if i not in held], sorted(part))


def groups(samples: Sequence[Sample], held_out: HeldOut) -> set[str]:
    """Return the names of the workflows or structures of `samples`."""
    return set(map(attrgetter(held_out), samples))


def _fit_forest(samples: Sequence[Sample], *, leaf: int, share: float) -> Model:
    """Train a forest whose trees split on `share` of the features down to `leaf` samples.

    Features are not scaled: for a tree only their order matters.
    """
    from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(
        n_estimators=_TREES, min_samples_leaf=leaf, max_features=share, random_state=_SEED
    )
    forest.fit(list(map(plan_features, samples)), list(map(delay_ms, samples)))

    def predict(asked: Sequence[Sample]) -> list[float]:
        delays = forest.predict(list(map(plan_features, asked))).tolist()
        return list(map(latency_ms, delays, asked))

    return predict


#: The paper's default parameters first, then shallower and more diverse trees.
_FOREST = Baseline(
    "RFR",
    tuple(
        Candidate(
            f"{leaf} samples a leaf, {share:.0%} of the features a split",
            partial(_fit_forest, leaf=leaf, share=share),
        )
        for leaf, share in ((1, 1.0), (3, 1.0), (1, 0.4))
    ),
)


def available() -> tuple[list[Baseline], dict[str, str]]:
    """Return the baselines whose library is installed, and why each other baseline does not run."""
    found, not_run = [], {}
    for name in BASELINES:
        if library := missing(name):
            # No path: the report is stored, and may be read on another machine.
            line = f"pip install 'chiron-openfaas[{library.extra}]'"
            not_run[name] = f"{library.name} is not installed: {line}"
        elif name == "RFR":
            found.append(_FOREST)
        else:
            from chiron.evaluation.prediction.baselines import networks

            found.append(networks.LSTM if name == "LSTM" else networks.GNN)
    return found, not_run


class BaselineReport(Document):
    """The errors of the baselines, each trained without the held-out part.

    ``settings`` maps each baseline to its settings by held-out part. ``not_run`` has the reason why
    a baseline did not run, and the fix.
    """

    held_out: HeldOut
    distributions: tuple[Distribution, ...]
    settings: dict[str, dict[str, str]]
    not_run: dict[str, str]


def compare_baselines(
    samples: Sequence[Sample], held_out: HeldOut, progress: Callable[[str], None]
) -> BaselineReport:
    """Train and test every baseline whose library is installed; list the rest as not run."""
    runnable, not_run = available()
    if len(groups(samples, held_out)) < 2:
        reason = _TOO_FEW[held_out]
        not_run |= {baseline.name: reason for baseline in runnable}
        runnable = []
    distributions: list[Distribution] = []
    settings = {}
    for baseline in runnable:
        predicted_ms, settings[baseline.name] = predict_held_out(
            baseline, samples, held_out, progress
        )
        places: dict[tuple[str, str], list[float]] = {}
        for sample, latency in zip(samples, predicted_ms, strict=True):
            errors = places.setdefault((sample.workflow, sample.mechanism), [])
            errors.append(latency / sample.measured_ms - 1)
        distributions += [
            Distribution.of(*place, baseline.name, errors) for place, errors in places.items()
        ]
    return BaselineReport(
        held_out=held_out,
        distributions=tuple(distributions),
        settings=settings,
        not_run=not_run,
    )
