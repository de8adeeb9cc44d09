"""The endpoint of the verb `deploy`: a workflow and an SLO in, a measured deployment as a job."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from flask import Response, jsonify
from flask_openapi3.blueprint import APIBlueprint
from flask_openapi3.models.tag import Tag
from pydantic import Field

from deployment.launcher import Launcher
from pipeline.deploy import SAMPLES, DeploymentReport, DeploymentRequest, Progress, deploy
from profiler.tracer import require_tracing
from scheduler.choices import Choices
from services.host import host
from services.job import Job, JobSummary
from workflow.documents import Document, validate
from workflow.errors import Faults
from workflow.folder import WorkflowFolder
from workflow.platform import Platform
from workflow.profile import Profile
from workflow.units import parse_duration_ms, parse_timeout_s

#: The kind of a deployment's job.
DEPLOYMENT = "deployment"

api = APIBlueprint(
    "deployments",
    __name__,
    url_prefix="/deployments",
    abp_tags=[Tag(name="deployments", description="From a workflow and an SLO to measured wraps")],
)


class DeploymentBody(Choices):
    """What to deploy; the workflow is a folder below the server's root, or the form's archive.

    Without a profile or a platform they are measured first.
    """

    slo: str
    timeout: str | None = None
    directory: str | None = None
    profile: Profile | None = None
    platform: Platform | None = None
    samples: Annotated[int, Field(ge=1, le=1000)] = SAMPLES
    check: bool = True


class DeploymentPath(Document):
    """Which deployment."""

    id: str


class Deployment(Job):
    """A deployment's job; its result has the plan and the measured latency."""

    result: DeploymentReport | None = None


class Deployments(Document):
    """The newest deployments first."""

    deployments: tuple[JobSummary, ...]


@api.post("", responses={202: {"description": "The job's result will be the deployment's report"}})
def post_deployment(body: DeploymentBody) -> Response:
    """Find, generate, deploy and measure the cheapest deployment that meets the SLO."""
    faults = Faults()
    with faults.noting():
        parse_duration_ms(body.slo, "slo")
    with faults.noting():
        parse_timeout_s(body.timeout)
    with faults.noting():
        if body.profile is None:
            require_tracing(os.environ)
    with faults.noting():
        folder = host().open_folder(body.directory)
        if body.profile is not None:
            body.profile.require(folder.workflow.functions)
    faults.raise_all()
    request = body.model_dump(mode="json")
    return host().submit(DEPLOYMENT, {"folder": str(folder.path), "request": request})


@api.get("", responses={200: Deployments})
def get_deployments() -> Response:
    """List the deployments."""
    listed = Deployments(deployments=host().store.newest(DEPLOYMENT))
    return jsonify(listed.model_dump(mode="json"))


@api.get("/<string:id>", responses={200: Deployment})
def get_deployment(path: DeploymentPath) -> Response:
    """Say how far a deployment is, and what came out."""
    return jsonify(host().store.get(path.id, DEPLOYMENT).model_dump(mode="json"))


@api.delete("/<string:id>", responses={200: Deployment})
def delete_deployment(path: DeploymentPath) -> Response:
    """Cancel a deployment that waits or runs; what it deployed already it removes."""
    return jsonify(host().cancel(path.id, DEPLOYMENT).model_dump(mode="json"))


def run_deployment(
    params: Mapping[str, Any], launcher: Launcher, progress: Progress
) -> dict[str, Any]:
    """The job that `post_deployment` queues."""
    body = validate(DeploymentBody, params["request"], "request")
    request = DeploymentRequest(
        folder=WorkflowFolder.open(Path(params["folder"])),
        slo_ms=parse_duration_ms(body.slo, "slo"),
        choices=body,
        profile=body.profile,
        platform=body.platform,
        timeout_s=parse_timeout_s(body.timeout),
        samples=body.samples,
        check=body.check,
    )
    report = deploy(request, launcher, Path(params["workspace"]) / "out", progress)
    return report.model_dump(mode="json")
