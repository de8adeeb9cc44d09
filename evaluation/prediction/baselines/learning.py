"""How baselines are trained and tested: never on what they are asked about."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from evaluation.prediction.baselines.samples import Sample

#: A trained model: the latency of every sample in milliseconds, whatever was measured.
Model = Callable[[Sequence[Sample]], list[float]]
HeldOut = Literal["workflow", "structure"]
#: Samples with equal names are of one group, which is never divided.
Group = Callable[[Sample], str]

#: Parts into which the structures are divided where structures are held out.
STRUCTURE_FOLDS = 5
#: Parts of the training samples by which settings are chosen.
INNER_FOLDS = 3


@dataclass(frozen=True)
class Candidate:
    """One way to train a baseline, and how it is called in a report."""

    settings: str
    fit: Callable[[Sequence[Sample]], Model]


@dataclass(frozen=True)
class Baseline:
    """A kind of model with the settings that are tried for it."""

    name: str
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True)
class Fold:
    """Indices of the samples to learn from and of those to be asked about."""

    train: list[int]
    test: list[int]


@dataclass(frozen=True)
class Learned:
    """Predictions of all samples by models that had seen no sample of their group.

    `chosen` is, for every fold, what was held out and which settings were chosen without it.
    """

    predicted_ms: list[float]
    chosen: dict[str, str]


def predict_held_out(
    baseline: Baseline,
    samples: Sequence[Sample],
    held_out: HeldOut,
    progress: Callable[[str], None],
) -> Learned:
    """Every sample's latency by a model that was trained without its workflow or structure.

    Raises
    ------
    ValueError
        Where all samples are of one workflow (or structure), so that nothing is left to learn
        from.
    """
    predicted_ms = [math.nan] * len(samples)
    chosen = {}
    for name, fold in _outer_folds(samples, held_out):
        progress(f"training {baseline.name} without {name}")
        train = [samples[index] for index in fold.train]
        candidate = choose(baseline, train)
        model = candidate.fit(train)
        for index, latency in zip(fold.test, model([samples[i] for i in fold.test]), strict=True):
            predicted_ms[index] = latency
        chosen[name] = candidate.settings
    return Learned(predicted_ms, chosen)


def choose(baseline: Baseline, samples: Sequence[Sample]) -> Candidate:
    """The settings with the smallest error on inner folds of `samples`; the first of equals.

    Workflows are held out where there are several, since that is what comes next; else structures.
    """
    held_out: HeldOut = "workflow" if len(groups(samples, "workflow")) > 1 else "structure"
    if len(baseline.candidates) == 1 or len(groups(samples, held_out)) < 2:
        return baseline.candidates[0]
    inner = list(folds(samples, group_by(held_out), INNER_FOLDS))
    return min(baseline.candidates, key=lambda candidate: _error(candidate, samples, inner))


def folds(samples: Sequence[Sample], group: Group, most: int) -> Iterator[Fold]:
    """At most `most` folds in which no group is divided, of about as many samples each.

    Raises
    ------
    ValueError
        Where there is one group only.
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


def group_by(held_out: HeldOut) -> Group:
    """What divides samples into groups where workflows or structures are held out."""
    return _workflow if held_out == "workflow" else _structure


def groups(samples: Sequence[Sample], held_out: HeldOut) -> set[str]:
    """The names of the groups of `samples`."""
    return set(map(group_by(held_out), samples))


def _workflow(sample: Sample) -> str:
    return sample.workflow


def _structure(sample: Sample) -> str:
    return sample.structure


def _outer_folds(samples: Sequence[Sample], held_out: HeldOut) -> Iterator[tuple[str, Fold]]:
    if held_out == "workflow":
        for fold in folds(samples, _workflow, len(samples)):
            yield samples[fold.test[0]].workflow, fold
    else:
        for number, fold in enumerate(folds(samples, _structure, STRUCTURE_FOLDS), start=1):
            yield f"part {number} of the structures", fold


def _error(candidate: Candidate, samples: Sequence[Sample], inner: Sequence[Fold]) -> float:
    errors = []
    for fold in inner:
        model = candidate.fit([samples[index] for index in fold.train])
        asked = [samples[index] for index in fold.test]
        errors += [
            abs(latency / sample.measured_ms - 1)
            for latency, sample in zip(model(asked), asked, strict=True)
        ]
    return statistics.fmean(errors)
