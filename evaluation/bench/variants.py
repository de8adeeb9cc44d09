"""Variants: the pairs of deployment model and mechanism that are measured against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from workflow.errors import ChironError
from workflow.plan import Mechanism, Model, Plan

MODELS: tuple[Model, ...] = get_args(Model)
MECHANISMS: tuple[Mechanism, ...] = get_args(Mechanism)
#: What the others are compared with.
OURS: Model = "pgp"
#: Models in which no wrap has a further process: no mechanism starts any.
_WITHOUT_PROCESSES: tuple[Model, ...] = ("one-to-one", "faastlane-t")
#: Marks the second deployment of a plan, which tells how far two measurements of one thing differ.
TWIN = "twin of "


@dataclass(frozen=True)
class Variant:
    """A deployment model with the mechanism that runs its further processes."""

    model: Model
    mechanism: Mechanism

    @property
    def label(self) -> str:
        """What it is called in tables, such as ``pgp fork``."""
        return self.model if self.model in _WITHOUT_PROCESSES else f"{self.model} {self.mechanism}"


def variants(models: Sequence[Model], mechanisms: Sequence[Mechanism]) -> list[Variant]:
    """Every model with every mechanism, once each where the mechanism makes no difference."""
    found: dict[str, Variant] = {}
    for model in (each for each in MODELS if each in models):
        for mechanism in (each for each in MECHANISMS if each in mechanisms):
            variant = Variant(model, mechanism)
            found.setdefault(variant.label, variant)
    return list(found.values())


def our_labels(mechanisms: Sequence[Mechanism]) -> list[str]:
    """The labels of our own model."""
    return [Variant(OURS, mechanism).label for mechanism in MECHANISMS if mechanism in mechanisms]


def distinct(plans: Mapping[str, Plan]) -> dict[str, str]:
    """Label -> the first label whose plan is the same in all that matters when it runs.

    Two models often have the same answer: Faastlane+ is Faastlane where no stage has more than
    five tasks. What is the same is measured once.
    """
    first: dict[tuple[object, ...], str] = {}
    return {label: first.setdefault(_essence(plan), label) for label, plan in plans.items()}


def _essence(plan: Plan) -> tuple[object, ...]:
    """The layout and, where there are further processes, the mechanism; no names of wraps."""
    forks = any(len(stage.processes) > 1 for wrap in plan.wraps for stage in wrap.stages)
    return (
        plan.called_by_client,
        plan.mechanism if forks else None,
        tuple((wrap.cpus, wrap.memory_mib, wrap.stages) for wrap in plan.wraps),
    )


def parse_models(text: str) -> tuple[Model, ...]:
    """The models in a list with commas; ``unknown-model`` names one that there is not."""
    names = _names(text)
    for name in names:
        if name not in MODELS:
            known = ", ".join(MODELS)
            raise ChironError("unknown-model", f"{name!a} is no model; there are {known}")
    return tuple(model for model in MODELS if model in names)


def parse_mechanisms(text: str) -> tuple[Mechanism, ...]:
    """The mechanisms in a list with commas; ``unknown-mechanism`` names one that there is not."""
    names = _names(text)
    for name in names:
        if name not in MECHANISMS:
            known = ", ".join(MECHANISMS)
            raise ChironError("unknown-mechanism", f"{name!a} is no mechanism; there are {known}")
    return tuple(mechanism for mechanism in MECHANISMS if mechanism in names)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
