"""The scheduler's endpoint: the plan that meets an SLO, from a workflow, a profile, a platform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

from flask import Response, current_app, jsonify
from flask_openapi3.blueprint import APIBlueprint
from flask_openapi3.models.tag import Tag

from scheduler.schedule import schedule
from workflow.documents import Document
from workflow.folder import parse_workflow
from workflow.plan import Mechanism, Model, Plan
from workflow.platform import Platform
from workflow.profile import Profile
from workflow.units import parse_duration_ms

api = APIBlueprint(
    "scheduler",
    __name__,
    url_prefix="/scheduler",
    abp_tags=[Tag(name="scheduler", description="The cheapest plan that meets an SLO")],
)


class Host(Protocol):
    """What the application does for this component."""

    def compute(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What the function returns, computed within limits."""


class ScheduleRequest(Document):
    """The content of workflow.json, profile.json and platform.json, and the SLO with its unit."""

    workflow: dict[str, Any]
    profile: Profile
    platform: Platform
    slo: str
    model: Model = "pgp"
    mechanism: Mechanism = "fork"


@api.post("/schedule", responses={200: Plan})
def post_schedule(body: ScheduleRequest) -> Response:
    """Find the plan of a deployment model that meets the SLO; meets_slo says whether it does."""
    host = cast(Host, current_app.extensions["chiron"])
    return jsonify(host.compute(answer, body))


def answer(body: ScheduleRequest) -> dict[str, Any]:
    """What `post_schedule` answers."""
    plan = schedule(
        parse_workflow(body.workflow),
        body.profile,
        body.platform,
        parse_duration_ms(body.slo, "slo"),
        model=body.model,
        mechanism=body.mechanism,
    )
    return plan.model_dump(mode="json")
