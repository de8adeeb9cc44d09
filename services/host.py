"""What the endpoints find in ``current_app.extensions["chiron"]``: folders, jobs, bounded work."""

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

from chiron.deployment.launcher import Launcher
from chiron.openfaas.credentials import Credentials
from chiron.services import NAMES, child, state_folder
from chiron.services.child import Failed, Limits, Progress, Stop, Work, call
from chiron.services.folders import folder_name, named_folder, uploaded_folder
from chiron.services.jobs import Job, JobStore, JobSummary, Submission
from chiron.services.strict_request import ARCHIVE, StrictRequest
from chiron.services.worker import Worker
from chiron.workflow.documents import Document
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder

#: How long the running job may take to remove what it deployed, and to be killed, in seconds.
STOP_TIMEOUT_S = 16.0
#: What one request may use to be answered.
REQUEST_LIMITS = Limits(time_s=60.0, cpu_s=60, memory_mib=4096)
#: Requests that are computed at once; the others get their answers beside them.
SLOTS = 4
#: What a job may use. Its processes have the CPU limit each.
JOB_LIMITS = Limits(time_s=3600.0, cpu_s=3600)
#: Jobs that only measure: one that ran when the server was killed runs once more.
REPEATABLE = frozenset({"profile", "calibrate"})
#: Does work within limits: progress to one function, and another says whether it has to stop.
Run = Callable[[Work, Limits, Progress, Stop], Any]
_Connect = Callable[[], AbstractContextManager[Launcher]]
#: The work of a job: its parameters, where it measures, and what to tell of progress.
_Job = Callable[[Mapping[str, Any], Launcher, Progress], Any]


@dataclass(frozen=True)
class Config:
    """What the services work with."""

    #: Gives a launcher for the length of one job; can be pickled.
    connect: _Connect
    #: The gateway that /healthz and the dashboard look at.
    gateway_url: str
    #: Below it are the workflow folders that clients may name.
    root: Path = field(default_factory=Path.cwd)
    #: Where jobs, their uploads and results are kept.
    state: Path = field(default_factory=state_folder)
    components: Sequence[str] = NAMES
    #: What clients have to send; None where all that reach the services may use them.
    secret: Credentials | None = None
    #: Whether certificates of the gateway are verified.
    verify_tls: bool = True
    #: What runs jobs, and computes answers, within limits.
    run: Run = child.run


class UploadPlaces(NamedTuple):
    """Where the archive of a request is, and the folder into which it is unpacked."""

    archive: Path
    target: Path


class Accepted(Document):
    """A job that was queued: ask for `location` until its status is done or failed."""

    id: str
    status: str
    location: str


class Host:
    """Folders, jobs and bounded work of one application; `jobs` does the work of each kind."""

    def __init__(self, config: Config, jobs: Mapping[str, _Job]) -> None:
        self.config = config
        self.store = JobStore(config.state / "jobs.sqlite")
        self._workspaces = config.state / "jobs"
        runners = {kind: partial(self._run_job, job) for kind, job in jobs.items()}
        self._worker = Worker(self.store, runners, self._discard)
        self._slots = threading.BoundedSemaphore(SLOTS)
        self._stopping = threading.Event()

    def open_folder(self, directory: str | None) -> WorkflowFolder:
        """The workflow folder that the request names, or has as an archive, checked."""
        archive = request.files.get(ARCHIVE)
        if (archive is None) == (directory is None):
            raise ChironError(
                "bad-request",
                'name one workflow folder: a "directory" of the server, or upload an archive',
                path="directory",
            )
        if directory is not None:
            # Its stack.yaml is expanded with the variables of the server.
            found = self.compute(named_folder, directory, self.config.root, dict(os.environ))
            return WorkflowFolder.open(Path(found))
        assert archive is not None  # noqa: S101  # for mypy, which cannot see it
        places = self.upload_places(archive.filename)
        archive.save(places.archive)
        return self.open_upload(places)

    def upload_places(self, file_name: str | None) -> UploadPlaces:
        """Those of the request's archive, which the client calls `file_name`."""
        workspace = self.workspace()
        target = workspace / "upload" / folder_name(file_name)
        return UploadPlaces(workspace / "upload.packed", target)

    def open_upload(self, places: UploadPlaces) -> WorkflowFolder:
        """The workflow folder in the archive that is there, unpacked and checked."""
        return WorkflowFolder.open(Path(self.compute(uploaded_folder, *places)))

    def compute(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What `function` returns, computed within limits where nothing can hang or crash us.

        Function, arguments and result have to be as `chiron.services.child.run` wants them.

        Raises what `function` raises; ``time-limit`` and the like (422); ``busy`` (429) where as
        much is being computed as may be.
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
        """Queue a job with the request's workspace; returns the answer 202, which locates it.

        A request that has the Idempotency-Key of an earlier one is answered with that one's job.
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
        """The job that is queued with the request's workspace, or was under `key` before."""
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
        """Cancel a job; ``not-found`` (404), ``ended`` (409)."""
        cancelled = self.store.cancel(job, kind)
        if cancelled.status == "running":
            self._worker.cancel(job)
        else:
            self._discard(job)
        return cancelled

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the jobs for the length of the block; ``state-in-use`` if another server does."""
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
                if folder.name not in pending:  # a server left it that was killed
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
        """The request's own folder, which becomes its job's or goes when it has been answered."""
        if "workspace" not in g:
            g.workspace = self._workspaces / secrets.token_hex(8)
            g.workspace.mkdir(parents=True, mode=0o700)
        workspace: Path = g.workspace
        return workspace

    def _without_places(self, error: ChironError) -> ChironError:
        """`error` with paths as the client knows them: below the root, or of the archive."""
        places = [self.config.root.resolve()]
        if "workspace" in g:
            places.append(g.workspace / "upload")
        for place in places:
            for each in (error, *error.parts):
                each.message = each.message.replace(f"{place}/", "")
        return error

    def _discard(self, job: str) -> None:
        """Remove the files of a job that has ended."""
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
    """Remove the folder of a request that became no job."""
    workspace = g.pop("workspace", None)
    if workspace is not None:
        shutil.rmtree(workspace, ignore_errors=True)


def _connected(
    job: _Job, connect: _Connect, lock: Path, params: Mapping[str, Any], progress: Progress
) -> Any:
    """Run a job, once that of a server that was killed has removed what it deployed."""
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with connect() as launcher:
            return job(params, launcher, progress)


def host() -> Host:
    """That of the application which answers the current request."""
    return cast(Host, current_app.extensions["chiron"])
