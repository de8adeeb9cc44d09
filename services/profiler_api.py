"""The profiler's endpoints: what functions do and what the platform costs, measured as jobs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from flask import Response
from flask_openapi3.blueprint import APIBlueprint
from flask_openapi3.models.tag import Tag

from deployment.launcher import Launcher
from profiler.calibrate import calibrate
from profiler.profile import profile
from profiler.tracer import require_tracing
from services.host import host
from workflow.documents import Document
from workflow.folder import WorkflowFolder

api = APIBlueprint(
    "profiler",
    __name__,
    url_prefix="/profiler",
    abp_tags=[Tag(name="profiler", description="What functions do, what the platform costs")],
)


class ProfileRequest(Document):
    """Which workflow to profile: a folder below the server's root, or the form's archive."""

    directory: str | None = None


@api.post("/profile", responses={202: {"description": "The job's result will be profile.json"}})
def post_profile(body: ProfileRequest) -> Response:
    """Run every function of a workflow alone, traced."""
    require_tracing(os.environ)
    folder = host().open_folder(body.directory)
    return host().submit("profile", {"folder": str(folder.path)})


@api.post("/calibrate", responses={202: {"description": "The job's result will be platform.json"}})
def post_calibrate() -> Response:
    """Measure the constants of the platform with functions that do nothing."""
    return host().submit("calibrate", {})


def run_profile(
    params: Mapping[str, Any], launcher: Launcher, progress: Callable[[str], None]
) -> dict[str, Any]:
    """The job that `post_profile` queues."""
    folder = WorkflowFolder.open(Path(params["folder"]))
    measured = profile(folder, launcher, progress=progress)
    return measured.model_dump(mode="json")


def run_calibrate(
    _: Mapping[str, Any], launcher: Launcher, progress: Callable[[str], None]
) -> dict[str, Any]:
    """The job that `post_calibrate` queues."""
    return calibrate(launcher, progress=progress).model_dump(mode="json")


#: The long jobs of this component by their kinds.
JOBS = {"profile": run_profile, "calibrate": run_calibrate}
