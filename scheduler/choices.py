"""What a user may choose about a plan, defined once for the command line and the services."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from scheduler.limits import COMMUNITY_EDITION_FUNCTIONS, Limits
from workflow.documents import Document
from workflow.plan import Mechanism, Model

#: A mechanism, or the one whose plan is better.
MechanismChoice = Literal[Mechanism, "auto"]
#: What is best among the plans that meet the SLO.
Strategy = Literal["cost", "balanced", "latency"]


class Choices(Document):
    """Model, mechanism and strategy of a plan, and the limits that it has to keep."""

    model: Annotated[
        Model, Field(description="pgp searches; the others are what it is compared with.")
    ] = "pgp"
    mechanism: Annotated[
        MechanismChoice, Field(description="auto: whichever gives the better plan.")
    ] = "fork"
    strategy: Annotated[
        Strategy,
        Field(
            description="Of the plans that meet the SLO: fewest CPUs, least CPUs x latency, "
            "or fastest."
        ),
    ] = "cost"
    headroom: Annotated[
        bool, Field(description="The high end of the prediction meets the SLO too.")
    ] = False
    max_functions: Annotated[
        int, Field(ge=1, description="How many functions OpenFaaS deploys.")
    ] = COMMUNITY_EDITION_FUNCTIONS
    node_memory_mib: Annotated[int | None, Field(ge=1, description="Memory of a node.")] = None

    @property
    def limits(self) -> Limits:
        """What the cluster takes."""
        return Limits(self.max_functions, self.node_memory_mib)
