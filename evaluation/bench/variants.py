"""Variants: pairs of planner and mechanism, their plans, and which stand side by side."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import product, starmap
from typing import NamedTuple

from chiron.predictor.mechanisms import MECHANISMS
from chiron.scheduler.layout import wrap_name
from chiron.scheduler.limits import COMMUNITY_EDITION_FUNCTIONS
from chiron.scheduler.planners import DEFAULT_PLANNER, PLANNERS
from chiron.workflow.errors import ChironError
from chiron.workflow.plan import Plan

#: What the others are compared with.
OURS = DEFAULT_PLANNER
#: Planners in which no wrap has a further process: no mechanism starts any.
_WITHOUT_PROCESSES: tuple[str, ...] = ("one-to-one", "faastlane-t")
#: Marks the second deployment of a plan, which tells how far two measurements of one thing differ.
REPLICATE = "A/A replicate of "
#: Providers under the Community Edition's limits.
_LIMITED = frozenset({"faasd", "faasd-ce", "faas-netes-ce"})


class Variant(NamedTuple):
    """A planner with the mechanism that runs its further processes."""

    planner: str
    mechanism: str

    @property
    def label(self) -> str:
        """What it is called in tables, such as ``pgp fork``."""
        if self.planner in _WITHOUT_PROCESSES:
            return self.planner
        return f"{self.planner} {self.mechanism}"


def variants(planners: Sequence[str], mechanisms: Sequence[str]) -> list[Variant]:
    """Every planner with every mechanism, once each where the mechanism makes no difference."""
    found: dict[str, Variant] = {}
    for variant in starmap(Variant, product(PLANNERS, MECHANISMS)):
        if variant.planner in planners and variant.mechanism in mechanisms:
            found.setdefault(variant.label, variant)
    return list(found.values())


def our_labels(mechanisms: Sequence[str]) -> list[str]:
    """The labels of our own planner."""
    return [Variant(OURS, mechanism).label for mechanism in MECHANISMS if mechanism in mechanisms]


def distinct(plans: Mapping[str, Plan]) -> dict[str, str]:
    """Label -> the first label whose plan is the same in all that matters when it runs.

    Two planners often have the same answer: Faastlane+ is Faastlane where no stage has more than
    five tasks. What is the same is measured once.
    """
    first: dict[tuple[object, ...], str] = {}
    return {label: first.setdefault(_essence(plan), label) for label, plan in plans.items()}


def _essence(plan: Plan) -> tuple[object, ...]:
    """What drives it and each wrap, without names; a mechanism where there is a further process."""
    wraps = tuple(
        (
            wrap.cpus,
            wrap.memory_mib,
            wrap.mechanism if len(wrap.processes) > 1 else None,
            wrap.processes,
        )
        for wrap in plan.wraps
    )
    return plan.orchestrator, plan.trigger, wraps


def parse_planners(text: str) -> tuple[str, ...]:
    """The planners in a list with commas; ``unknown-planner`` names one that there is not."""
    return _parsed(text, PLANNERS, "planner")


def parse_mechanisms(text: str) -> tuple[str, ...]:
    """The mechanisms in a list with commas; ``unknown-mechanism`` names one that there is not."""
    return _parsed(text, MECHANISMS, "mechanism")


def _parsed(text: str, known: Collection[str], kind: str) -> tuple[str, ...]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in known:
            listed = ", ".join(known)
            raise ChironError(f"unknown-{kind}", f"{name!a} is no {kind}; there are {listed}")
    return tuple(each for each in known if each in names)


def apart(plan: Plan, mark: str = "eval") -> Plan:
    """`plan` with wraps of other names, so that nothing that the user has deployed is updated."""
    wraps = tuple(
        wrap.model_copy(update={"name": wrap_name(wrap.name, mark)}) for wrap in plan.wraps
    )
    return plan.model_copy(update={"wraps": wraps})


def with_replicate(plans: Mapping[str, Plan], labels: Sequence[str]) -> dict[str, Plan]:
    """`plans` and, once more, the plan of the first of `labels` that is there."""
    label = next((label for label in labels if label in plans), next(iter(plans)))
    return {**plans, f"{REPLICATE}{label}": plans[label]}


def function_limit(provider: str) -> int | None:
    """How many functions the gateway of `provider` holds; None for any number."""
    return COMMUNITY_EDITION_FUNCTIONS if provider in _LIMITED else None


def groups(functions: Mapping[str, int], room: int | None) -> list[list[str]]:
    """The labels of `functions`, in groups that need no more than `room` functions each.

    Variants of one group are measured in turn, so few groups are better. A variant that needs
    more than there is room is a group of its own: the gateway may say what it thinks of that.

    >>> groups({"a": 6, "b": 6, "c": 6, "d": 1}, 13)
    [['a', 'b', 'd'], ['c']]
    """
    if room is None:
        return [list(functions)]
    made: list[list[str]] = []
    for label, needed in functions.items():
        for group in made:
            if sum(functions[each] for each in group) + needed <= room:
                group.append(label)
                break
        else:
            made.append([label])
    return made
