"""The thread that runs long jobs, one after another: two that measure would disturb each other."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Mapping
from typing import Any

from services.jobs import Claim, JobStore
from services.problems import Problem
from workflow.errors import ChironError

Progress = Callable[[str], None]
#: A job's work: its parameters and whom to tell of progress in, its result as JSON out.
Runner = Callable[[Mapping[str, Any], Progress], Any]

#: Longest pause after the database could not be used, in seconds.
_RETRY_S = 1.0
_log = logging.getLogger("services")


class Worker:
    """Runs the jobs of `store` whose kinds `runners` knows, from `start` until `stop`."""

    def __init__(self, store: JobStore, runners: Mapping[str, Runner]) -> None:
        self._store = store
        self._runners = runners
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="jobs", daemon=True)

    def start(self) -> None:
        """Begin with the oldest job that waits."""
        self._thread.start()

    def wake(self) -> None:
        """Look for a job that was queued just now."""
        self._wake.set()

    def stop(self, timeout_s: float) -> None:
        """End the running job at its next step, so that it removes what it deployed.

        A job that takes longer than `timeout_s` to get there is left to the next start of the
        server, which finds it interrupted.
        """
        self._stopping.set()
        self._wake.set()
        self._thread.join(timeout_s)

    def _loop(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                claim = self._store.claim(self._runners)
                if claim is None:
                    self._wake.wait()
                else:
                    self._run(claim)
            except sqlite3.Error:
                _log.exception("the jobs cannot be read or written")
                self._stopping.wait(_RETRY_S)

    def _run(self, claim: Claim) -> None:
        def progress(line: str) -> None:
            if self._stopping.is_set():
                raise ChironError(
                    "interrupted", "the server was stopped: submit the job again", status=503
                )
            self._store.add_progress(claim.id, line)

        try:
            self._store.finish(claim.id, self._runners[claim.kind](claim.params, progress))
        except ChironError as error:
            self._store.fail(claim.id, Problem.of(error))
        except Exception:
            _log.exception("job %s (%s) failed", claim.id, claim.kind)
            self._store.fail(claim.id, Problem.internal())
