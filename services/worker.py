"""The thread that runs long jobs one after another: two measuring jobs would disturb each other."""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from chiron.deployment.deploy import Progress
from chiron.services.child import Failed, Stop
from chiron.services.jobs import JobStore, Submission
from chiron.services.problems import Problem, internal
from chiron.workflow.errors import ChironError

#: A job's work: called with its parameters and functions for progress and stop; returns its result.
Runner = Callable[[Mapping[str, Any], Progress, Stop], Any]

#: The pause after an error of the database, in seconds.
_RETRY_S = 1.0
#: The time that ended jobs are kept.
KEPT = timedelta(days=7)
#: The pause between deletions of expired jobs while no job runs, in seconds.
_EXPIRE_S = 3600.0
_log = logging.getLogger("services")


def end_process() -> None:
    """End the server as SIGTERM does: answers and jobs are finished, and clients see its end."""
    os.kill(os.getpid(), signal.SIGTERM)


class Worker:
    """Runs the jobs of `store` of the kinds in `runners`, from `start` until `stop`.

    Calls `discard` with every job that has ended, and `lost` if the thread ends by an error:
    without the thread, jobs would wait for ever.
    """

    def __init__(
        self,
        store: JobStore,
        runners: Mapping[str, Runner],
        discard: Callable[[str], None],
        lost: Callable[[], None] = end_process,
    ) -> None:
        self._store = store
        self._runners = runners
        self._discard = discard
        self._lost = lost
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self.failed = False
        self._cancelled: set[str] = set()
        self._thread = threading.Thread(target=self._loop, name="jobs", daemon=True)

    def start(self) -> None:
        """Start with the oldest queued job."""
        self._thread.start()

    def wake(self) -> None:
        """Look for a job that was just queued."""
        self._wake.set()

    def cancel(self, job: str) -> None:
        self._cancelled.add(job)

    def stop(self, timeout_s: float) -> None:
        """Stop the running job, so that it removes what it deployed.

        If the job takes longer than `timeout_s`, the next start of the server finds it interrupted.
        """
        self._stopping.set()
        self._wake.set()
        self._thread.join(timeout_s)

    def _loop(self) -> None:
        try:
            self._run_jobs()
        except BaseException as error:
            _log.critical("the thread that runs jobs ended: the server ends", exc_info=error)
            self.failed = True
            self._lost()

    def _run_jobs(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                self._store.expire(KEPT)
                claim = self._store.claim(self._runners)
            except sqlite3.Error:
                self._pause()
                continue
            if claim is None:
                self._wake.wait(_EXPIRE_S)
            else:
                self._run(claim)
                self._discard(claim.id)

    def _run(self, claim: Submission) -> None:
        fields = {"job": claim.id, "kind": claim.kind, "request_id": claim.request_id}
        _log.info("job started", extra=fields)
        try:
            result = self._runners[claim.kind](
                claim.params,
                lambda line: self._store.add_progress(claim.id, line),
                lambda: self._reason_to_stop(claim.id),
            )
        except Failed as failure:
            problem, partial = Problem.of(failure.error), failure.partial
            self._settle(lambda: self._store.fail(claim.id, problem, partial))
            _log.info("job failed", extra=fields | {"code": problem.code})
        except Exception as error:
            _log.error("job failed", exc_info=error, extra=fields)
            self._settle(lambda: self._store.fail(claim.id, Problem.of(internal())))
        else:
            self._settle(lambda: self._store.finish(claim.id, result))
            _log.info("job done", extra=fields)
        self._cancelled.discard(claim.id)

    def _reason_to_stop(self, job: str) -> ChironError | None:
        if job in self._cancelled:
            return ChironError("cancelled", "the job was cancelled", status=409)
        if self._stopping.is_set():
            message = "the server was stopped: submit the job again"
            return ChironError("interrupted", message, status=503)
        return None

    def _settle(self, write: Callable[[], None]) -> None:
        """Write how a job ended, with retries: a full disk may have space again."""
        while True:
            try:
                return write()
            except sqlite3.Error:
                self._pause()
                if self._stopping.is_set():
                    return None

    def _pause(self) -> None:
        _log.exception("the jobs cannot be read or written")
        self._stopping.wait(_RETRY_S)
