"""The endpoints, one blueprint per component: the requests and their answers."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from flask import Response, jsonify, request, send_file
from flask_openapi3.blueprint import APIBlueprint
from flask_openapi3.models.tag import Tag
from pydantic import Field

from chiron.adaptation.alone import deploying
from chiron.adaptation.proving import TRIES, deploy_proven
from chiron.deployment.deploy import Progress
from chiron.deployment.launcher import Launcher
from chiron.gateway.images import home
from chiron.generator.generate import Sources, generate
from chiron.installation.packages import Finding
from chiron.installation.preflight import preflight
from chiron.pipeline.deploy import SAMPLES, DeploymentReport, DeploymentRequest
from chiron.profiler.calibrate import calibrate
from chiron.profiler.kept_platform import KeptPlatforms
from chiron.profiler.profile import profile
from chiron.profiler.tracer import require_tracing
from chiron.scheduler.choices import Choices
from chiron.services import NAMES
from chiron.services.host import host
from chiron.services.jobs import Job, JobSummary
from chiron.services.planning import (
    PredictAnswer,
    PredictRequest,
    ScheduleRequest,
    load_of,
    predicted,
    scheduled,
)
from chiron.services.strict_request import ARCHIVE
from chiron.workflow.documents import Document, validate
from chiron.workflow.errors import ChironError, Faults
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.names import shown
from chiron.workflow.plan import Plan
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile
from chiron.workflow.units import parse_duration_ms, parse_timeout_s


def _component(name: str, description: str, *, prefixed: bool = True) -> APIBlueprint:
    tags = [Tag(name=name, description=description)]
    return APIBlueprint(name, __name__, url_prefix=f"/{name}" * prefixed, abp_tags=tags)


def _json(document: Document) -> Response:
    return jsonify(document.model_dump(mode="json"))


_profiler = _component("profiler", "What functions do, what the platform costs")
_predictor = _component("predictor", "Latencies of plans, before anything is deployed")
_scheduler = _component("scheduler", "The cheapest plan that meets an SLO")
_generator = _component("generator", "Plans as ordinary OpenFaaS functions")
_deployments = _component("deployments", "From a workflow and an SLO to measured wraps")
_jobs = _component("jobs", "What takes long: queued, running, done or failed")
_health = _component("health", "The machine", prefixed=False)


def _refuse_query() -> None:
    """Refuse fields in the address, where none is read."""
    for name in request.args:
        message = f"{shown(name)} is in the address: send fields in the body"
        raise ChironError("bad-request", message, path=name)


def _refuse_archive() -> None:
    """Refuse an archive where no folder is read."""
    if ARCHIVE in request.files:
        message = "an archive is not read here: send each of its documents as a part of the form"
        raise ChironError("bad-request", message, path=ARCHIVE)


for _each in (_profiler, _predictor, _scheduler, _generator, _deployments, _jobs):
    _each.before_request(_refuse_query)
for _each in (_predictor, _scheduler):
    _each.before_request(_refuse_archive)
#: The blueprints that are served with any component.
COMMON = (_jobs, _health)
#: The blueprints by their names in `chiron serve`.
COMPONENTS = dict(
    zip(NAMES, (_profiler, _predictor, _scheduler, _generator, _deployments), strict=True)
)


class ProfileRequest(Document):
    """The workflow to profile: a folder below the server's root, or the form's archive."""

    directory: str | None = None


@_profiler.post(
    "/profile", responses={202: {"description": "The job's result will be profile.json"}}
)
def post_profile(body: ProfileRequest) -> Response:
    """Run every function of a workflow alone, traced."""
    require_tracing(os.environ)
    folder = host().open_folder(body.directory)
    return host().submit("profile", {"folder": str(folder.path)})


@_profiler.post(
    "/calibrate", responses={202: {"description": "The job's result will be platform.json"}}
)
def post_calibrate() -> Response:
    """Measure the constants of the platform with functions that do nothing."""
    if request.get_data() not in (b"", b"{}"):
        raise ChironError("bad-request", "a calibration has no parameters: send no body")
    return host().submit("calibrate", {})


@_predictor.post("/predict", responses={200: PredictAnswer})
def post_predict(body: PredictRequest) -> Response:
    """Predict the latency of one plan, or of many."""
    return jsonify(host().compute(predicted, body))


@_scheduler.post("/schedule", responses={200: Plan})
def post_schedule(body: ScheduleRequest) -> Response:
    """Find a planner's plan that meets the SLO; meets_slo is whether it does."""
    return jsonify(host().compute(scheduled, body))


class GenerateRequest(Document):
    """The content of plan.json; the workflow is a folder below the root, or the form's archive.

    `timeout` is the timeout of requests to the generated functions, a duration with its unit.
    """

    plan: Plan
    timeout: str | None = None
    directory: str | None = None


_GZIP = "application/gzip"


@_generator.post(
    "/generate",
    responses={
        200: {
            "description": "build/ as a .tar.gz, in which faas-cli up runs",
            "headers": {
                "Warning": {
                    "description": "For each warning 199, chiron and the text in quotes",
                    "schema": {"type": "string"},
                }
            },
            "content": {_GZIP: {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
def post_generate(body: GenerateRequest) -> Response:
    """Turn a plan into the folder that faas-cli builds and deploys."""
    folder = host().open_folder(body.directory)
    out = host().workspace() / "build"
    limit_s = parse_timeout_s(body.timeout)
    parts = body.plan, folder.path, out, limit_s, host().config.store
    archive, warnings = host().compute(write_archive, *parts)
    response = send_file(archive, mimetype=_GZIP, as_attachment=True, download_name="build.tar.gz")
    for warning in warnings:
        response.headers.add("Warning", f"199 chiron {json.dumps(warning)}")
    return response


def write_archive(
    plan: Plan, folder: Path, out: Path, timeout_s: float | None, store: str
) -> tuple[str, list[str]]:
    """Generate `plan` of the workflow in `folder` into `out`; return its archive, and warnings."""
    sources = Sources.read(WorkflowFolder.open(folder), store=store)
    generate(plan, sources, out, timeout_s)
    archive = out.with_name("build.tar.gz")
    with tarfile.open(archive, mode="w:gz") as tar:
        tar.add(out, arcname=out.name, filter=_anonymous)
    return str(archive), sources.warnings_for(plan)


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return the member without the server's user and group."""
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


class DeploymentBody(Choices):
    """The workflow to deploy: a folder below the server's root, or the form's archive.

    A missing profile or platform is measured first. At most ``tries`` plans are deployed and
    measured until one keeps the SLO. Without ``prove``, the plan that is predicted to keep it is
    deployed and measured with ``samples`` requests. With a ``rate``, such as ``50/s``, the plan has
    replicas for it, and requests arrive at random at that rate.
    """

    slo: str
    rate: str | None = None
    timeout: str | None = None
    directory: str | None = None
    profile: Profile | None = None
    platform: Platform | None = None
    tries: Annotated[int, Field(ge=1)] = TRIES
    prove: bool = True
    samples: Annotated[int, Field(ge=1, le=1000)] = SAMPLES
    check: bool = True


class Deployment(Job):
    """A deployment's job; its result has the plan and the measured latency."""

    result: DeploymentReport | None = None


class Deployments(Document):
    """The newest deployments first."""

    deployments: tuple[JobSummary, ...]


class Jobs(Document):
    """The newest jobs first."""

    jobs: tuple[JobSummary, ...]


class JobPath(Document):
    """The id of a job or deployment."""

    id: str


@_deployments.post(
    "", responses={202: {"description": "The job's result will be the deployment's report"}}
)
def post_deployment(body: DeploymentBody) -> Response:
    """Deploy the cheapest plan that is measured to keep the SLO."""
    params = deployment_params(body, lambda: host().open_folder(body.directory))
    return host().submit("deployment", params)


def deployment_params(
    body: DeploymentBody, open_folder: Callable[[], WorkflowFolder]
) -> dict[str, Any]:
    """Return the parameters of the job of `post_deployment`; raises all errors in them."""
    faults = Faults()
    with faults.noting():
        parse_duration_ms(body.slo, "slo")
    with faults.noting():
        parse_timeout_s(body.timeout)
    with faults.noting():
        load_of(body.rate)
    with faults.noting():
        if body.profile is None:
            require_tracing(os.environ)
    with faults.noting():
        folder = open_folder()
        if body.profile is not None:
            body.profile.require(folder.workflow.functions)
    faults.raise_all()
    return {"folder": str(folder.path), "request": body.model_dump(mode="json")}


@_deployments.get("", responses={200: Deployments})
def get_deployments() -> Response:
    """List the deployments."""
    return _json(Deployments(deployments=host().store.newest("deployment")))


@_deployments.get("/<string:id>", responses={200: Deployment})
def get_deployment(path: JobPath) -> Response:
    """Return a deployment's progress and result."""
    return _json(host().store.get(path.id, "deployment"))


@_deployments.delete("/<string:id>", responses={200: Deployment})
def delete_deployment(path: JobPath) -> Response:
    """Cancel a queued or running deployment; it removes what it has deployed."""
    return _json(host().cancel(path.id, "deployment"))


@_jobs.get("", responses={200: Jobs})
def get_jobs() -> Response:
    """List the jobs."""
    return _json(Jobs(jobs=host().store.newest()))


@_jobs.get("/<string:id>", responses={200: Job})
def get_job(path: JobPath) -> Response:
    """Return a job's progress and result."""
    return _json(host().store.get(path.id))


@_jobs.delete("/<string:id>", responses={200: Job})
def delete_job(path: JobPath) -> Response:
    """Cancel a queued or running job; a running job first removes what it has deployed."""
    return _json(host().cancel(path.id))


def run_profile(
    params: Mapping[str, Any], launcher: Launcher, progress: Progress
) -> dict[str, Any]:
    folder = WorkflowFolder.open(Path(params["folder"]))
    with deploying(launcher.gateway, folder.workflow.name):
        return profile(folder, launcher, progress=progress).model_dump(mode="json")


def run_calibrate(_: Mapping[str, Any], launcher: Launcher, progress: Progress) -> dict[str, Any]:
    return calibrate(launcher, progress=progress).model_dump(mode="json")


def run_deployment(
    params: Mapping[str, Any], launcher: Launcher, progress: Progress
) -> dict[str, Any]:
    body = validate(DeploymentBody, params["request"], "request")
    request = DeploymentRequest(
        folder=WorkflowFolder.open(Path(params["folder"])),
        slo_ms=parse_duration_ms(body.slo, "slo"),
        choices=body,
        profile=body.profile,
        platform=body.platform,
        platforms=KeptPlatforms(home() / "platforms"),
        timeout_s=parse_timeout_s(body.timeout),
        samples=body.samples,
        check=body.check,
        load=load_of(body.rate),
    )
    out = Path(params["workspace"]) / "out"
    tries = body.tries if body.prove else None
    with deploying(launcher.gateway, request.folder.workflow.name):
        report = deploy_proven(request, launcher, out, progress, tries)
    return report.model_dump(mode="json")


#: The work of each kind of job.
JOBS: dict[str, Callable[[Mapping[str, Any], Launcher, Progress], dict[str, Any]]] = {
    "profile": run_profile,
    "calibrate": run_calibrate,
    "deployment": run_deployment,
}


class Health(Document):
    """Whether everything that is required is there."""

    ok: bool
    findings: tuple[Finding, ...]


# 200 even if something is missing: the service is up, and does all that needs neither strace nor a
# gateway.
@_health.get("/healthz", responses={200: Health})
def get_health() -> Response:
    """List what is missing on this machine, and the commands that fix it."""
    config = host().config
    found = preflight(config.gateway_url, os.environ, config.verify_tls)
    ok = all(finding.ok for finding in found if finding.required)
    return _json(Health(ok=ok, findings=tuple(found)))
