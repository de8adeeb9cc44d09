"""The predictor's endpoint: latencies of plans, from a workflow, a profile and a platform."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flask import Response, jsonify
from flask_openapi3.blueprint import APIBlueprint
from flask_openapi3.models.tag import Tag
from pydantic import Field, RootModel, model_validator

from predictor.predict import predict
from services.host import host
from workflow.documents import Document
from workflow.errors import ChironError
from workflow.folder import parse_workflow
from workflow.model import Workflow
from workflow.plan import Plan, Prediction
from workflow.platform import Platform
from workflow.profile import Profile

api = APIBlueprint(
    "predictor",
    __name__,
    url_prefix="/predictor",
    abp_tags=[Tag(name="predictor", description="Latencies of plans, before anything is deployed")],
)


class PredictRequest(Document):
    """The content of workflow.json, profile.json, platform.json, and of one plan.json or many."""

    workflow: dict[str, Any]
    profile: Profile
    platform: Platform
    plan: Plan | None = None
    plans: tuple[Plan, ...] | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _one_of_plan_and_plans(self) -> PredictRequest:
        if (self.plan is None) == (self.plans is None):
            raise ValueError("send either plan or plans")
        return self


class Predictions(Document):
    """The predictions of `plans`, in their order."""

    predictions: tuple[Prediction, ...]


class PredictAnswer(RootModel[Prediction | Predictions]):
    """The prediction of `plan`, or those of `plans`."""


@api.post("/predict", responses={200: PredictAnswer})
def post_predict(body: PredictRequest) -> Response:
    """Predict the latency of one plan, or of many."""
    return jsonify(host().compute(answer, body))


def answer(body: PredictRequest) -> dict[str, Any]:
    """What `post_predict` answers."""
    workflow = parse_workflow(body.workflow)
    plans = {"plan": body.plan} if body.plan is not None else _numbered(body.plans or ())
    for path, plan in plans.items():
        _check(plan, workflow, path)
    found = [predict(plan, workflow, body.profile, body.platform) for plan in plans.values()]
    told = found[0] if body.plan is not None else Predictions(predictions=tuple(found))
    return told.model_dump(mode="json")


def _numbered(plans: Sequence[Plan]) -> dict[str, Plan]:
    return {f"plans[{index}]": plan for index, plan in enumerate(plans)}


def _check(plan: Plan, workflow: Workflow, path: str) -> None:
    """Raise what `Plan.check_against` raises, with the path from the body's top."""
    try:
        plan.check_against(workflow)
    except ChironError as error:
        where = f"{path}.{error.path}"
        raise ChironError(
            error.code, error.message, path=where, functions=error.functions
        ) from None
