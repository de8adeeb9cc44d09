"""The newest state of the deployed workflows: polled on demand, in a separate thread."""

from __future__ import annotations

import os
import threading
import time
from collections import deque

from chiron.deployment.live import Live, LiveMonitor, LiveWorkflow
from chiron.openfaas.client import Gateway
from chiron.openfaas.credentials import credentials_for
from chiron.workflow.errors import ChironError

#: Seconds between polls, which all callers share, and seconds that a caller waits for a poll.
EVERY_S, _WAIT_S = 2.0, 0.5
#: The timeout of one answer of the gateway, and of a poll before an error is raised, in seconds.
_ANSWER_S, _LATE_S = 5.0, 10.0
#: The polls whose p95 of a workflow is kept.
_REMEMBERED = 40


class LiveFeed:
    """Polls the gateway at `url`; a slow poll delays no caller by more than `_WAIT_S`.

    Safe to share between threads.
    """

    def __init__(self, url: str, verify_tls: bool = True) -> None:
        self._url, self._verify_tls = url, verify_tls
        self._lock = threading.Lock()
        self._thread = threading.Thread()
        self._began = -EVERY_S
        self._monitor: LiveMonitor | None = None
        self._newest: Live | Exception | None = None
        self._p95_ms: dict[tuple[str, str], deque[float]] = {}

    def newest(self) -> Live | None:
        """Return the newest state; None before the first poll has ended.

        Raises the gateway's errors; ``timeout`` if a poll takes too long.
        """
        with self._lock:
            if not self._thread.is_alive() and time.monotonic() >= self._began + EVERY_S:
                self._began = time.monotonic()
                self._thread = threading.Thread(target=self._poll, daemon=True)
                self._thread.start()
            thread = self._thread
        thread.join(_WAIT_S)
        found = self._newest
        if isinstance(found, Exception):
            raise found
        if thread.is_alive() and time.monotonic() > self._began + _LATE_S:
            message = f"gateway {self._url} has not answered for {_LATE_S:g} s"
            raise ChironError("timeout", message, status=504)
        return found

    def trend_ms(self, live: LiveWorkflow) -> list[float]:
        """Return the p95 of a workflow at the last polls, in milliseconds, oldest first."""
        return list(self._p95_ms.get(_identity(live), ()))

    def _poll(self) -> None:
        try:
            if self._monitor is None:
                credentials = credentials_for(self._url, os.environ)
                gateway = Gateway(self._url, credentials, self._verify_tls, _ANSWER_S)
                self._monitor = LiveMonitor(gateway)
            found = self._monitor.poll()
            self._p95_ms = {
                _identity(live): self._p95_ms.get(_identity(live), deque(maxlen=_REMEMBERED))
                for live in found.workflows
            }
            for live in found.workflows:
                if live.latency is not None:
                    self._p95_ms[_identity(live)].append(live.latency.p95_ms)
            self._newest = found
        except Exception as error:  # `newest` raises it
            if self._monitor is not None:
                self._monitor.gateway.close()
            self._monitor = None  # the credentials may change soon
            self._newest = error


def _identity(live: LiveWorkflow) -> tuple[str, str]:
    return live.deployed.workflow, live.deployed.planner
