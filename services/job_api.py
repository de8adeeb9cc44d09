"""The endpoints of long jobs of any kind."""

from __future__ import annotations

from flask import Response, jsonify
from flask_openapi3.blueprint import APIBlueprint
from flask_openapi3.models.tag import Tag

from services.host import host
from services.job import Job, JobSummary
from workflow.documents import Document

api = APIBlueprint(
    "jobs",
    __name__,
    url_prefix="/jobs",
    abp_tags=[Tag(name="jobs", description="What takes long: queued, running, done or failed")],
)


class JobPath(Document):
    """Which job."""

    id: str


class Jobs(Document):
    """The newest jobs first."""

    jobs: tuple[JobSummary, ...]


@api.get("", responses={200: Jobs})
def get_jobs() -> Response:
    """List the jobs."""
    return jsonify(Jobs(jobs=host().store.newest()).model_dump(mode="json"))


@api.get("/<string:id>", responses={200: Job})
def get_job(path: JobPath) -> Response:
    """Say how far a job is, and what came out."""
    return jsonify(host().store.get(path.id).model_dump(mode="json"))


@api.delete("/<string:id>", responses={200: Job})
def delete_job(path: JobPath) -> Response:
    """Cancel a job that waits or runs; one that runs removes what it deployed first."""
    return jsonify(host().cancel(path.id).model_dump(mode="json"))
