"""The profiler's endpoints: what functions do and what the platform costs, measured as jobs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, cast

from flask import Response, current_app
from flask_openapi3.blueprint import APIBlueprint
from flask_openapi3.models.tag import Tag

from profiler.launcher import Launcher
from profiler.permission import require_tracing
from profiler.profile import profile
from workflow.documents import Document
from workflow.folder import WorkflowFolder

api = APIBlueprint(
    "profiler",
    __name__,
    url_prefix="/profiler",
    abp_tags=[Tag(name="profiler", description="What functions do, what the platform costs")],
)


class Host(Protocol):
    """What the application does for this component."""

    def open_folder(self, directory: str | None) -> WorkflowFolder:
        """The workflow folder that the request names or uploads."""

    def submit(self, kind: str, params: Mapping[str, Any]) -> Response:
        """Queue a job of one of these kinds; the answer says where it is."""


class ProfileRequest(Document):
    """Which workflow to profile: a folder below the server's root, or the form's archive."""

    directory: str | None = None


@api.post("/profile", responses={202: {"description": "The job's result will be profile.json"}})
def post_profile(body: ProfileRequest) -> Response:
    """Run every function of a workflow alone, traced."""
    require_tracing(os.environ)
    folder = _host().open_folder(body.directory)
    return _host().submit("profile", {"folder": str(folder.path)})


@api.post("/calibrate", responses={202: {"description": "The job's result will be platform.json"}})
def post_calibrate() -> Response:
    """Measure the constants of the platform with functions that do nothing."""
    return _host().submit(CALIBRATE, {})


def run_profile(
    params: Mapping[str, Any], launcher: Launcher, progress: Callable[[str], None]
) -> dict[str, Any]:
    """The job that `post_profile` queues."""
    folder = WorkflowFolder.open(Path(params["folder"]))
    measured = profile(folder, launcher, progress=progress)
    return measured.model_dump(mode="json")


#: The kind of the job that `post_calibrate` queues. It checks predictions, of which the profiler
#: knows nothing.
CALIBRATE = "calibrate"
#: The long jobs of this component by their kinds.
JOBS = {"profile": run_profile}


def _host() -> Host:
    return cast(Host, current_app.extensions["chiron"])
