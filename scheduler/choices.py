"""The user's choices about a plan, defined once for the command line and the services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from chiron.predictor.mechanisms import DEFAULT_MECHANISM, MECHANISMS
from chiron.scheduler.limits import COMMUNITY_EDITION_FUNCTIONS, Limits
from chiron.scheduler.planners import DEFAULT_PLANNER, PLANNERS
from chiron.workflow.documents import Document
from chiron.workflow.load import Percentile
from chiron.workflow.paths import DEFAULT_PATH, PathKind
from chiron.workflow.plan import DEFAULT_ATTEMPTS, DEFAULT_PERCENTILE, DEFAULT_TRIGGER
from chiron.wrap.core.triggers import TriggerKind

if TYPE_CHECKING:
    PlannerChoice = str
    MechanismChoice = str
else:  # the existing names, for help and schemas
    PlannerChoice = Literal[tuple(PLANNERS)]
    #: A mechanism, or the mechanism with the better plan.
    MechanismChoice = Literal[(*MECHANISMS, "auto")]
#: The best of the plans that meet the SLO.
Strategy = Literal["cost", "balanced", "latency"]


class Choices(Document):
    """The choices for a plan: planner, mechanism, trigger, path, attempts, strategy and limits."""

    planner: Annotated[
        PlannerChoice,
        Field(description=f"{DEFAULT_PLANNER} searches; the others are what it is compared with."),
    ] = DEFAULT_PLANNER
    mechanism: Annotated[
        MechanismChoice, Field(description="auto: whichever gives the better plan.")
    ] = DEFAULT_MECHANISM
    trigger: Annotated[
        TriggerKind,
        Field(
            description="data: a task waits for its inputs; stage: for the whole stage before. "
            "The client of one-to-one goes by stage, unless the workflow decides while it runs."
        ),
    ] = DEFAULT_TRIGGER
    path: Annotated[
        PathKind,
        Field(
            description="How objects get to other wraps: directly where that is possible, else "
            "through the gateway; always through it; or by a store."
        ),
    ] = DEFAULT_PATH
    attempts: Annotated[
        int,
        Field(
            ge=1,
            le=10,
            description="How often a task may be started whose process or wrap is lost (1: once, "
            "so that none runs twice). Buckets have attempts of their own.",
        ),
    ] = DEFAULT_ATTEMPTS
    strategy: Annotated[
        Strategy,
        Field(
            description="Of the plans that meet the SLO: fewest CPUs, least CPUs x latency, "
            "or fastest."
        ),
    ] = "cost"
    percentile: Annotated[
        Percentile,
        Field(
            description="How many percent of the requests the SLO is for, over payloads by weight "
            "(100: every request)."
        ),
    ] = DEFAULT_PERCENTILE
    max_functions: Annotated[
        int, Field(ge=1, description="How many functions OpenFaaS deploys.")
    ] = COMMUNITY_EDITION_FUNCTIONS
    node_memory_mib: Annotated[int | None, Field(ge=1, description="Memory of a node.")] = None

    @property
    def limits(self) -> Limits:
        return Limits(self.max_functions, self.node_memory_mib)


NO_CHOICES = Choices()
