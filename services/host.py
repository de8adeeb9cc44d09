"""The endpoints' environment, ``current_app.extensions["chiron"]``: folders, jobs, bounded work."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from flask import Response, current_app, g, jsonify, request

from chiron.deployment.deploy import Progress
from chiron.deployment.launcher import Launcher
from chiron.openfaas.credentials import Credentials
from chiron.services import NAMES, child, state_folder
from chiron.services.child import Failed, Limits, Stop, Work, call
from chiron.services.folders import folder_name, named_folder, uploaded_folder
from chiron.services.jobs import Job, JobStore, JobSummary, Submission
from chiron.services.strict_request import ARCHIVE, StrictRequest
from chiron.services.worker import Worker
from chiron.workflow.documents import Document
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder

#: Seconds that the running job has to remove what it deployed, and to be killed.
STOP_TIMEOUT_S = 16.0
REQUEST_LIMITS = Limits(time_s=60.0, cpu_s=60, memory_mib=4096)
#: The most answers that are computed at once; answers that need no computing are not limited.
SLOTS = 4
#: The limits of a job; the CPU limit is for each of its processes.
JOB_LIMITS = Limits(time_s=3600.0, cpu_s=3600)
#: Jobs that only measure: if the server is killed, a running job is repeated once.
REPEATABLE = frozenset({"profile", "calibrate"})
#: Does work within limits; calls one function with progress, and another to learn if it must stop.
Run = Callable[[Work, Limits, Progress, Stop], Any]
_Connect = Callable[[], AbstractContextManager[Launcher]]
#: The work of a job: called with its parameters, a launcher, and a function for progress.
_Job = Callable[[Mapping[str, Any], Launcher, Progress], Any]


@dataclass(frozen=True)
class Config:
    """The configuration of the services."""

    #: Returns a context manager of a launcher for one job; can be pickled.
    connect: _Connect
    #: The gateway of /healthz and the dashboard.
    gateway_url: str
    #: The folder of the workflow folders that clients may name.
    root: Path = field(default_factory=Path.cwd)
    #: The folder of jobs, their uploads and results.
    state: Path = field(default_factory=state_folder)
    components: Sequence[str] = NAMES
    #: The secret that clients must send; None if no secret is needed.
    secret: Credentials | None = None
    #: Whether certificates of the gateway are verified.
    verify_tls: bool = True
    #: The URL of the object store for wraps; empty if there is none.
    store: str = ""
    #: Runs jobs and computes answers, within limits.
    run: Run = child.run


class UploadPlaces(NamedTuple):
    """The file of a request's archive, and the folder to unpack it into."""

    archive: Path
    target: Path


class Accepted(Document):
    """A job that was queued: poll `location` until its status is done or failed."""

    id: str
    status: str
    location: str


class Host:
    """Folders, jobs and bounded work of one application; `jobs` has the work of each kind."""

    def __init__(self, config: Config, jobs: Mapping[str, _Job]) -> None:
        self.config = config
        self.store = JobStore(config.state / "jobs.sqlite")
        self._workspaces = config.state / "jobs"
        runners = {kind: partial(self._run_job, job) for kind, job in jobs.items()}
        self._worker = Worker(self.store, runners, self._discard)
        self._slots = threading.BoundedSemaphore(SLOTS)
        self._stopping = threading.Event()

    def open_folder(self, directory: str | None) -> WorkflowFolder:
        """Return the workflow folder that the request names, or uploads as an archive, checked."""
        archive = request.files.get(ARCHIVE)
        if (archive is None) == (directory is None):
            raise ChironError(
                "bad-request",
                'name one workflow folder: a "directory" of the server, or upload an archive',
                path="directory",
            )
        if directory is not None:
            # Its stack.yaml is expanded with the server's variables.
            found = self.compute(named_folder, directory, self.config.root, dict(os.environ))
            return WorkflowFolder.open(Path(found))
        assert archive is not None  # noqa: S101  # for mypy, which cannot see it
        places = self.upload_places(archive.filename)
        archive.save(places.archive)
        return self.open_upload(places)

    def upload_places(self, file_name: str | None) -> UploadPlaces:
        """Return the places for the request's archive, which the client calls `file_name`."""
        workspace = self.workspace()
        target = workspace / "upload" / folder_name(file_name)
        return UploadPlaces(workspace / "upload.packed", target)

    def open_upload(self, places: UploadPlaces) -> WorkflowFolder:
        """Unpack the uploaded archive; return its workflow folder, checked."""
        return WorkflowFolder.open(Path(self.compute(uploaded_folder, *places)))

    def compute(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Compute `function` within limits, in a process that cannot hang or crash the server.

        Function, arguments and result must meet the conditions of `chiron.services.child.run`.

        Raises the errors of `function`; those of the limits, such as ``time-limit`` (422); ``busy``
        (429) if `SLOTS` answers are being computed.
        """
        if not self._slots.acquire(blocking=False):
            message = f"{SLOTS} requests are being computed already: try again soon"
            raise ChironError("busy", message, status=429)
        try:
            work = call(function, *arguments)
            return self.config.run(work, REQUEST_LIMITS, lambda _: None, self._stopped)
        except Failed as failure:
            raise self._without_places(failure.error) from None
        finally:
            self._slots.release()

    def submit(self, kind: str, params: Mapping[str, Any]) -> Response:
        """Queue a job with the request's workspace; return the answer 202 with its location.

        A request with the Idempotency-Key of an earlier request is answered with the earlier job.
        """
        asked = cast(StrictRequest, request)
        job = self.queue(kind, params, asked.idempotency_key, asked.fingerprint)
        accepted = Accepted(id=job.id, status=job.status, location=job.location)
        response = jsonify(accepted.model_dump())
        response.status_code, response.location = 202, job.location
        return response

    def queue(
        self, kind: str, params: Mapping[str, Any], key: str | None = None, fingerprint: str = ""
    ) -> JobSummary:
        """Queue a job with the request's workspace, unless `key` has one; return the job."""
        workspace = self.workspace()
        submission = Submission(
            id=workspace.name,
            kind=kind,
            params={**params, "workspace": str(workspace)},
            key=key,
            fingerprint=fingerprint,
            request_id=g.get("request_id", ""),
        )
        job = self.store.submit(submission)
        if job.id == workspace.name:
            g.pop("workspace")
            self._worker.wake()
        return job

    def cancel(self, job: str, kind: str | None = None) -> Job:
        """Cancel a job; raises ``not-found`` (404), ``ended`` (409)."""
        cancelled = self.store.cancel(job, kind)
        if cancelled.status == "running":
            self._worker.cancel(job)
        else:
            self._discard(job)
        return cancelled

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run jobs for the duration of the block; ``state-in-use`` if another server does."""
        with (self.config.state / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                place = f"another server keeps its jobs in {self.config.state}"
                message = f"{place}: end it, or set CHIRON_HOME"
                raise ChironError("state-in-use", message) from None
            self.store.recover(REPEATABLE)
            pending = self.store.pending()
            for folder in self._workspaces.glob("*"):
                if folder.name not in pending:  # left by a killed server
                    self._discard(folder.name)
            self._worker.start()
            try:
                yield
            finally:
                self._stopping.set()
                self._worker.stop(STOP_TIMEOUT_S)
            if self._worker.failed:
                message = "the services ended, as the thread that runs jobs did: see their log"
                raise ChironError("jobs-lost", message, status=500)

    def workspace(self) -> Path:
        """Return the request's own folder, which its job inherits or `remove_workspace` removes."""
        if "workspace" not in g:
            g.workspace = self._workspaces / secrets.token_hex(8)
            g.workspace.mkdir(parents=True, mode=0o700)
        workspace: Path = g.workspace
        return workspace

    def _without_places(self, error: ChironError) -> ChironError:
        """Return `error` with paths as the client has them: below the root, or in the archive."""
        places = [self.config.root.resolve()]
        if "workspace" in g:
            places.append(g.workspace / "upload")
        for place in places:
            for each in (error, *error.parts):
                each.message = each.message.replace(f"{place}/", "")
        return error

    def _discard(self, job: str) -> None:
        shutil.rmtree(self._workspaces / job, ignore_errors=True)

    def _stopped(self) -> ChironError | None:
        if self._stopping.is_set():
            return ChironError("stopping", "the server was stopped: try again", status=503)
        return None

    def _run_job(self, job: _Job, params: Mapping[str, Any], progress: Progress, stop: Stop) -> Any:
        config = self.config
        work = partial(_connected, job, config.connect, config.state / "job.lock", dict(params))
        return config.run(work, JOB_LIMITS, progress, stop)


def remove_workspace(_: BaseException | None) -> None:
    """Remove the folder of a request that did not become a job."""
    workspace = g.pop("workspace", None)
    if workspace is not None:
        shutil.rmtree(workspace, ignore_errors=True)


def _connected(
    job: _Job, connect: _Connect, lock: Path, params: Mapping[str, Any], progress: Progress
) -> Any:
    """Run a job, after the job of a killed server has removed what it deployed."""
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with connect() as launcher:
            return job(params, launcher, progress)


def host() -> Host:
    """Return the host of the application that answers the current request."""
    return cast(Host, current_app.extensions["chiron"])
