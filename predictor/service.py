"""The predictor's endpoint: latencies of plans, from a workflow, a profile and a platform."""

from __future__ import annotations

from typing import Any

from flask import Response, jsonify
from flask_openapi3.blueprint import APIBlueprint
from flask_openapi3.models.tag import Tag
from pydantic import Field, RootModel, model_validator

from predictor.predict import predict
from workflow.documents import Document
from workflow.folder import parse_workflow
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
    workflow = parse_workflow(body.workflow)
    plans = [body.plan] if body.plan is not None else body.plans or ()
    found = [predict(plan, workflow, body.profile, body.platform) for plan in plans]
    answer = found[0] if body.plan is not None else Predictions(predictions=tuple(found))
    return jsonify(answer.model_dump(mode="json"))
