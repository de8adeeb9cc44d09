"""What the components' blueprints find in ``current_app.extensions["chiron"]``."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flask import Response, g, jsonify, request

from services.archives import unpack
from services.folders import folder_name, named_folder, uploaded_folder
from services.jobs import JobStore
from services.strict_request import ARCHIVE
from services.worker import Runner, Worker
from workflow.documents import Document
from workflow.errors import ChironError
from workflow.folder import WorkflowFolder

#: How long the running job may take to remove what it deployed, in seconds.
STOP_TIMEOUT_S = 15.0


class Accepted(Document):
    """A job that was queued: ask for `location` until its status is done or failed."""

    id: str
    status: str
    location: str


class Host:
    """Folders and jobs for the blueprints of one application.

    Parameters
    ----------
    root
        Below it are the folders that clients may name.
    state
        Where the jobs and their files are kept.
    runners
        What does the work of each kind of job.
    variables
        The server's own, with which stack.yaml files below `root` are expanded.
    """

    def __init__(
        self, root: Path, state: Path, runners: Mapping[str, Runner], variables: Mapping[str, str]
    ) -> None:
        self.variables = variables
        self.store = JobStore(state / "jobs.sqlite")
        self._root = root
        self._state = state
        self._worker = Worker(self.store, runners)

    def open_folder(self, directory: str | None) -> WorkflowFolder:
        """The workflow folder that the request names, or has as an archive in its form."""
        archive = request.files.get(ARCHIVE)
        if (archive is None) == (directory is None):
            raise ChironError(
                "bad-request",
                'name one workflow folder: a "directory" of the server, or upload an archive',
                path="directory",
            )
        if directory is not None:
            return named_folder(directory, self._root, self.variables)
        assert archive is not None  # noqa: S101  # for mypy, which cannot see it
        target = self._workspace() / folder_name(archive.filename)
        return uploaded_folder(unpack(archive.stream, target), self.variables)

    def submit(self, kind: str, params: Mapping[str, Any]) -> Response:
        """Queue a job with the request's workspace; returns the answer 202, which locates it."""
        workspace = self._workspace()
        self.store.submit(workspace.name, kind, {**params, "workspace": str(workspace)})
        g.pop("workspace")
        self._worker.wake()
        job = self.store.get(workspace.name)
        accepted = Accepted(id=job.id, status="queued", location=job.location)
        response = jsonify(accepted.model_dump())
        response.status_code = 202
        response.headers["Location"] = job.location
        return response

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the jobs for the length of the block; ``state-in-use`` if another server does."""
        with self._exclusive():
            self.store.interrupt_running()
            self._remove_orphans()
            self._worker.start()
            try:
                yield
            finally:
                self._worker.stop(STOP_TIMEOUT_S)

    def _workspace(self) -> Path:
        """The request's own folder, which becomes its job's or goes when it has been answered."""
        if "workspace" not in g:
            g.workspace = self._workspaces / secrets.token_hex(8)
            g.workspace.mkdir(parents=True, mode=0o700)
        workspace: Path = g.workspace
        return workspace

    @property
    def _workspaces(self) -> Path:
        return self._state / "jobs"

    def _remove_orphans(self) -> None:
        """Remove folders of requests that a server was killed in before they were jobs."""
        known = self.store.ids()
        for folder in self._workspaces.glob("*"):
            if folder.name not in known:
                shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        with (self._state / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ChironError(
                    "state-in-use",
                    f"another server keeps its jobs in {self._state}: end it, or set CHIRON_HOME",
                ) from None
            yield


def remove_workspace(_: BaseException | None) -> None:
    """Remove the folder of a request that became no job."""
    workspace = g.pop("workspace", None)
    if workspace is not None:
        shutil.rmtree(workspace, ignore_errors=True)


def state_folder(variables: Mapping[str, str] = os.environ) -> Path:
    """Where jobs are kept by default: CHIRON_HOME, or the user's state folder."""
    home = variables.get("CHIRON_HOME")
    return Path(home) if home else Path.home() / ".local" / "state" / "chiron"
