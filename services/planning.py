"""Predictions and plans from the content of a request: workflow, profile and platform."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any

from pydantic import Field, RootModel, model_validator

from chiron.predictor.predict import predict
from chiron.scheduler.choices import Choices
from chiron.scheduler.folder_settings import FolderSettings, wanted
from chiron.scheduler.load import predict_load
from chiron.scheduler.replicas import schedule_load
from chiron.scheduler.schedule import schedule
from chiron.workflow.constraints import NO_CONSTRAINTS, Constraints
from chiron.workflow.documents import Document
from chiron.workflow.errors import ChironError, Faults
from chiron.workflow.folder import parse_workflow
from chiron.workflow.load import Load, LoadPrediction, Percentile
from chiron.workflow.model import Workflow
from chiron.workflow.names import NAME, FunctionNames
from chiron.workflow.plan import DEFAULT_PERCENTILE, MOST_REPLICAS, Plan, Prediction
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile
from chiron.workflow.units import parse_duration_ms, parse_rate_per_s


def load_of(rate: str | None) -> Load | None:
    """Return the load of a rate, None without; raises ``bad-rate``."""
    return None if rate is None else Load(per_s=parse_rate_per_s(rate))


class _PredictionInputs(Document):
    """The content of workflow.json, with `name` if it has none, and of its profile and platform."""

    workflow: dict[str, Any]
    profile: Profile
    platform: Platform
    functions: dict[str, Annotated[str, Field(pattern=f"^{NAME.pattern}$")]] = Field(
        default_factory=dict
    )
    name: Annotated[str, Field(pattern=f"^{NAME.pattern}$")] = "workflow"

    @property
    def parsed(self) -> Workflow:
        """The parsed workflow; raises the errors of parsing."""
        return parse_workflow(self.workflow, self.name, FunctionNames(self.functions))


class PredictRequest(_PredictionInputs):
    """The content of workflow.json, profile.json, platform.json, and of one plan.json or many.

    With `rate`, such as ``50/s``, or `clients`, the prediction is the latency under that load. Each
    wrap then has `replicas` replicas, or as many as the plan gives it.
    """

    plan: Plan | None = None
    plans: tuple[Plan, ...] | None = Field(default=None, min_length=1)
    percentile: Annotated[
        Percentile, Field(description="How many percent of the requests `within` is for.")
    ] = DEFAULT_PERCENTILE
    rate: str | None = None
    clients: Annotated[int, Field(ge=1, le=10_000)] | None = None
    replicas: Annotated[int, Field(ge=1, le=MOST_REPLICAS)] | None = None

    @model_validator(mode="after")
    def _one_of_plan_and_plans(self) -> PredictRequest:
        if (self.plan is None) == (self.plans is None):
            raise ValueError("send either plan or plans")
        if self.rate is not None and self.clients is not None:
            raise ValueError("send either rate or clients")
        if self.replicas is not None and self.rate is None and self.clients is None:
            raise ValueError("replicas serve a load: send rate or clients")
        return self

    @property
    def load(self) -> Load | None:
        """The load, if one is asked for; raises ``bad-rate``."""
        if self.rate is None and self.clients is None:
            return None
        return load_of(self.rate) or Load(clients=self.clients)


class Predictions(Document):
    """The predictions of `plans`, in order."""

    predictions: tuple[Prediction | LoadPrediction, ...]


class PredictAnswer(RootModel[Prediction | LoadPrediction | Predictions]):
    """The prediction of `plan`, or the predictions of `plans`."""


def predicted(body: PredictRequest) -> dict[str, Any]:
    workflow = body.parsed
    plans = {f"plans[{index}]": plan for index, plan in enumerate(body.plans or ())}
    if body.plan is not None:
        plans = {"plan": body.plan}
    for path, plan in plans.items():
        _check(plan, workflow, path)
    load, known = body.load, (workflow, body.profile, body.platform)
    found: list[Prediction | LoadPrediction] = [
        predict_load(plan.with_replicas(body.replicas), *known, load, body.percentile)
        if load
        else predict(plan, *known, body.percentile)
        for plan in plans.values()
    ]
    told = found[0] if body.plan is not None else Predictions(predictions=tuple(found))
    return told.model_dump(mode="json")


def _check(plan: Plan, workflow: Workflow, path: str) -> None:
    """Raise the errors of `Plan.check_against`, with the path from the body's top."""
    try:
        plan.check_against(workflow)
    except ChironError as error:
        raise error.changed(f"{path}.{error.path}") from None


class ScheduleRequest(_PredictionInputs, Choices):
    """The content of workflow.json, profile.json and platform.json, and the SLO with its unit.

    If functions have constraints, variables or secrets: also the content of constraints.json, and
    the ``environment`` and ``secrets`` of each function in stack.yaml.
    """

    slo: str
    rate: Annotated[
        str | None, Field(description="Requests that arrive at random, in the mean: 50/s.")
    ] = None
    constraints: Constraints = NO_CONSTRAINTS
    environments: dict[str, dict[str, str]] = Field(default_factory=dict)
    secrets: dict[str, tuple[str, ...]] = Field(default_factory=dict)


def scheduled(body: ScheduleRequest) -> dict[str, Any]:
    workflow, slo_ms, settings = parse_schedule_request(body)
    known = (workflow, body.profile, body.platform, slo_ms)
    load = load_of(body.rate)
    if load is None:
        plan = schedule(*known, body, settings)
    else:
        plan = schedule_load(*known, load, body, settings)
    return plan.model_dump(mode="json")


def parse_schedule_request(body: ScheduleRequest) -> tuple[Workflow, float, FolderSettings]:
    """Return the workflow, the SLO in milliseconds and the settings of `body`, checked."""
    workflow = body.parsed
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
    with faults.noting():
        load_of(body.rate)
    faults.raise_all()
    settings = FolderSettings(
        constraints=body.constraints,
        environments={f: wanted(given) for f, given in body.environments.items()},
        secrets=body.secrets,
    )
    return workflow, slo_ms, settings


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
