"""What the components' blueprints find in ``current_app.extensions["chiron"]``."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from flask import Response, current_app, g, jsonify, request

from services.child import Failed, Limits, Progress, Stop, Work, call
from services.folders import folder_name, named_folder, uploaded_folder
from services.job import Job, Submission, fingerprint, idempotency_key
from services.jobs import JobStore
from services.strict_request import ARCHIVE
from services.worker import Runner, Worker
from workflow.documents import Document
from workflow.errors import ChironError
from workflow.folder import WorkflowFolder

#: How long the running job may take to remove what it deployed, and to be killed, in seconds.
STOP_TIMEOUT_S = 16.0
#: What one request may use to be answered.
REQUEST_LIMITS = Limits(time_s=60.0, cpu_s=60, memory_mib=4096)
#: Requests that are computed at once; the others get their answers beside them.
SLOTS = 4
#: Jobs that only measure: one that ran when the server was killed runs once more.
REPEATABLE = frozenset({"profile", "calibrate"})
#: Does work within limits: progress to one function, and another says whether it has to stop.
Run = Callable[[Work, Limits, Progress, Stop], Any]


class Accepted(Document):
    """A job that was queued: ask for `location` until its status is done or failed."""

    id: str
    status: str
    location: str


class Host:
    """Folders, jobs and bounded work for the blueprints of one application.

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
    run
        What does other work, within limits.
    """

    def __init__(
        self,
        root: Path,
        state: Path,
        runners: Mapping[str, Runner],
        variables: Mapping[str, str],
        run: Run,
    ) -> None:
        self.variables = variables
        self.store = JobStore(state / "jobs.sqlite")
        self._root = root
        self._state = state
        self._run = run
        self._worker = Worker(self.store, runners, self._discard)
        self._slots = threading.BoundedSemaphore(SLOTS)
        self._stopping = threading.Event()

    def open_folder(self, directory: str | None) -> WorkflowFolder:
        """The workflow folder that the request names, or has as an archive in its form.

        Its stack.yaml and handlers have been checked.
        """
        archive = request.files.get(ARCHIVE)
        if (archive is None) == (directory is None):
            raise ChironError(
                "bad-request",
                'name one workflow folder: a "directory" of the server, or upload an archive',
                path="directory",
            )
        if directory is not None:
            found = self.compute(named_folder, directory, self._root, dict(self.variables))
            return WorkflowFolder.open(Path(found))
        assert archive is not None  # noqa: S101  # for mypy, which cannot see it
        packed = self.workspace() / "upload.packed"
        archive.save(packed)
        target = self.workspace() / "upload" / folder_name(archive.filename)
        return WorkflowFolder.open(Path(self.compute(uploaded_folder, packed, target)))

    def compute(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What `function` returns, computed within limits where nothing can hang or crash us.

        Function, arguments and result have to be as `services.child.run` wants them.

        Raises
        ------
        ChironError
            What `function` raises; ``time-limit`` and the like (422); ``busy`` (429) where as
            much is being computed as may be.
        """
        if not self._slots.acquire(blocking=False):
            message = f"{SLOTS} requests are being computed already: try again soon"
            raise ChironError("busy", message, status=429)
        try:
            return self._run(call(function, *arguments), REQUEST_LIMITS, _untold, self._stopped)
        except Failed as failure:
            raise self._without_places(failure.error) from None
        finally:
            self._slots.release()

    def submit(self, kind: str, params: Mapping[str, Any]) -> Response:
        """Queue a job with the request's workspace; returns the answer 202, which locates it.

        A request that has the Idempotency-Key of an earlier one is answered with that one's job.
        """
        workspace = self.workspace()
        submission = Submission(
            id=workspace.name,
            kind=kind,
            params={**params, "workspace": str(workspace)},
            key=idempotency_key(request),
            fingerprint=fingerprint(request),
            request_id=g.get("request_id", ""),
        )
        job = self.store.submit(submission)
        if job.id == workspace.name:
            g.pop("workspace")
            self._worker.wake()
        accepted = Accepted(id=job.id, status=job.status, location=job.location)
        response = jsonify(accepted.model_dump())
        response.status_code = 202
        response.headers["Location"] = job.location
        return response

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
        with self._exclusive():
            self.store.recover(REPEATABLE)
            self._remove_orphans()
            self._worker.start()
            try:
                yield
            finally:
                self._stopping.set()
                self._worker.stop(STOP_TIMEOUT_S)

    def workspace(self) -> Path:
        """The request's own folder, which becomes its job's or goes when it has been answered."""
        if "workspace" not in g:
            g.workspace = self._workspaces / secrets.token_hex(8)
            g.workspace.mkdir(parents=True, mode=0o700)
        workspace: Path = g.workspace
        return workspace

    def _without_places(self, error: ChironError) -> ChironError:
        """`error` with paths as the client knows them: below the root, or of the archive."""
        places = [self._root.resolve(), *([g.workspace / "upload"] if "workspace" in g else [])]
        for place in places:
            error.message = error.message.replace(f"{place}/", "")
        return error

    def _discard(self, job: str) -> None:
        """Remove the files of a job that has ended."""
        shutil.rmtree(self._workspaces / job, ignore_errors=True)

    def _stopped(self) -> ChironError | None:
        if self._stopping.is_set():
            return ChironError("stopping", "the server was stopped: try again", status=503)
        return None

    @property
    def _workspaces(self) -> Path:
        return self._state / "jobs"

    def _remove_orphans(self) -> None:
        """Remove what a server left that was killed: folders of no job that is still to run."""
        pending = self.store.pending()
        for folder in self._workspaces.glob("*"):
            if folder.name not in pending:
                self._discard(folder.name)

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


def _untold(_: str) -> None:
    """Progress that is not asked for."""


def state_folder(variables: Mapping[str, str] = os.environ) -> Path:
    """Where jobs are kept by default: a folder of CHIRON_HOME, or the user's state folder.

    It is nobody else's, as CHIRON_HOME may have to be.
    """
    home = variables.get("CHIRON_HOME")
    return Path(home) / "services" if home else Path.home() / ".local" / "state" / "chiron"


def host() -> Host:
    """That of the application which answers the current request."""
    return cast(Host, current_app.extensions["chiron"])
