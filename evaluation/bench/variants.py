"""Variants: pairs of planner and mechanism, their distinct plans, and their deployment groups."""

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

#: The planner that the other planners are compared with.
OURS = DEFAULT_PLANNER
#: Planners whose wraps have one process each, so that the mechanism makes no difference.
_WITHOUT_PROCESSES: tuple[str, ...] = ("one-to-one", "faastlane-t")
#: Prefix of a plan's second deployment, which shows how far two measurements of a plan differ.
REPLICATE = "A/A replicate of "
#: Providers with the Community Edition's limits.
_LIMITED = frozenset({"faasd", "faasd-ce", "faas-netes-ce"})


class Variant(NamedTuple):
    """A planner with the mechanism that starts its further processes."""

    planner: str
    mechanism: str

    @property
    def label(self) -> str:
        """The name in tables, such as ``pgp fork``."""
        if self.planner in _WITHOUT_PROCESSES:
            return self.planner
        return f"{self.planner} {self.mechanism}"


def variants(planners: Sequence[str], mechanisms: Sequence[str]) -> list[Variant]:
    """Return every planner with every mechanism, or once if the mechanism makes no difference."""
    found: dict[str, Variant] = {}
    for variant in starmap(Variant, product(PLANNERS, MECHANISMS)):
        if variant.planner in planners and variant.mechanism in mechanisms:
            found.setdefault(variant.label, variant)
    return list(found.values())


def our_labels(mechanisms: Sequence[str]) -> list[str]:
    """Return the labels of our planner's variants."""
    return [Variant(OURS, mechanism).label for mechanism in MECHANISMS if mechanism in mechanisms]


def distinct(plans: Mapping[str, Plan]) -> dict[str, str]:
    """Map each label to the first label whose plan runs the same way.

    Two planners often make the same plan: Faastlane+ is Faastlane if no stage has more than five
    tasks. Equal plans are measured once.
    """
    first: dict[tuple[object, ...], str] = {}
    return {label: first.setdefault(_essence(plan), label) for label, plan in plans.items()}


def _essence(plan: Plan) -> tuple[object, ...]:
    """Return what affects a run: no names, and mechanisms only of wraps with further processes."""
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
    """Return the planners in a comma-separated list; raises ``unknown-planner``."""
    return _parsed(text, PLANNERS, "planner")


def parse_mechanisms(text: str) -> tuple[str, ...]:
    """Return the mechanisms in a comma-separated list; raises ``unknown-mechanism``."""
    return _parsed(text, MECHANISMS, "mechanism")


def _parsed(text: str, known: Collection[str], kind: str) -> tuple[str, ...]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in known:
            listed = ", ".join(known)
            raise ChironError(f"unknown-{kind}", f"{name!a} is no {kind}; there are {listed}")
    return tuple(each for each in known if each in names)


def apart(plan: Plan, mark: str = "eval") -> Plan:
    """Return `plan` with other wrap names, so that it updates no deployed functions of the user."""
    wraps = tuple(
        wrap.model_copy(update={"name": wrap_name(wrap.name, mark)}) for wrap in plan.wraps
    )
    return plan.model_copy(update={"wraps": wraps})


def with_replicate(plans: Mapping[str, Plan], labels: Sequence[str]) -> dict[str, Plan]:
    """Return `plans` with a replicate of the first of `labels` in it, else of the first plan."""
    label = next((label for label in labels if label in plans), next(iter(plans)))
    return {**plans, f"{REPLICATE}{label}": plans[label]}


def function_limit(provider: str) -> int | None:
    """Return the most functions of a gateway of `provider`; None if there is no limit."""
    return COMMUNITY_EDITION_FUNCTIONS if provider in _LIMITED else None


def groups(functions: Mapping[str, int], room: int | None) -> list[list[str]]:
    """Return the labels of `functions` in groups of at most `room` functions each.

    Variants of one group are measured in turn, so fewer groups are better. A variant with more
    than `room` functions is a group of its own, and the gateway may refuse it.

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
