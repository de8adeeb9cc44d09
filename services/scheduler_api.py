"""The scheduler's endpoint: the plan that meets an SLO, from a workflow, a profile, a platform."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from flask import Response, jsonify
from flask_openapi3.blueprint import APIBlueprint
from flask_openapi3.models.tag import Tag
from pydantic import Field

from scheduler.choices import Choices
from scheduler.folder_settings import FolderSettings, wanted
from scheduler.schedule import schedule_as
from services.host import host
from workflow.constraints import NO_CONSTRAINTS, Constraints
from workflow.errors import ChironError, Faults
from workflow.folder import parse_workflow
from workflow.model import Workflow
from workflow.plan import Plan
from workflow.platform import Platform
from workflow.profile import Profile
from workflow.units import parse_duration_ms

api = APIBlueprint(
    "scheduler",
    __name__,
    url_prefix="/scheduler",
    abp_tags=[Tag(name="scheduler", description="The cheapest plan that meets an SLO")],
)


class ScheduleRequest(Choices):
    """The content of workflow.json, profile.json and platform.json, and the SLO with its unit.

    Where functions have constraints, variables or secrets: the content of constraints.json, and by
    function what its stack.yaml has for ``environment`` and ``secrets``.
    """

    workflow: dict[str, Any]
    profile: Profile
    platform: Platform
    slo: str
    constraints: Constraints = NO_CONSTRAINTS
    environments: dict[str, dict[str, str]] = Field(default_factory=dict)
    secrets: dict[str, tuple[str, ...]] = Field(default_factory=dict)


@api.post("/schedule", responses={200: Plan})
def post_schedule(body: ScheduleRequest) -> Response:
    """Find the plan of a planner that meets the SLO; meets_slo says whether it does."""
    return jsonify(host().compute(answer, body))


def answer(body: ScheduleRequest) -> dict[str, Any]:
    """What `post_schedule` answers."""
    workflow = parse_workflow(body.workflow)
    faults = Faults()
    for field, named in (("environments", body.environments), ("secrets", body.secrets)):
        with faults.noting():
            _require_known(field, named, workflow)
    with faults.noting():
        body.constraints.check_functions(workflow.functions)
    with faults.noting():
        body.constraints.unchecked(workflow)
    with faults.noting():
        body.profile.require(workflow.functions)
    with faults.noting():
        slo_ms = parse_duration_ms(body.slo, "slo")
    faults.raise_all()
    settings = FolderSettings(
        constraints=body.constraints,
        environments={f: wanted(given) for f, given in body.environments.items()},
        secrets=body.secrets,
    )
    plan = schedule_as(workflow, body.profile, body.platform, slo_ms, body, settings)
    return plan.model_dump(mode="json")


def _require_known(field: str, functions: Collection[str], workflow: Workflow) -> None:
    unknown = sorted(set(functions).difference(workflow.functions))
    if unknown:
        raise ChironError(
            "unknown-function",
            f"{field} has {', '.join(unknown[:8])}, which the workflow does not use: correct the "
            "name or leave it out",
            path=field,
            functions=unknown,
        )
