"""The newest look at what is deployed: taken when somebody asks, in a thread of its own."""

from __future__ import annotations

import os
import threading
import time
from collections import deque

from chiron.deployment.live import Live, LiveWorkflow, Lookout
from chiron.openfaas.client import Gateway
from chiron.openfaas.credentials import credentials_for
from chiron.workflow.errors import ChironError

#: For how long one look does for all who ask, and how long each of them waits for it, in seconds.
EVERY_S, _WAIT_S = 2.0, 0.5
#: How long the gateway may take for one answer, and how long a look may before that is told.
_ANSWER_S, _LATE_S = 5.0, 10.0
#: Looks of which a workflow's p95 is remembered.
_REMEMBERED = 40


class LiveFeed:
    """Looks at the gateway at `url`; one that is slow holds up nobody who asks.

    Safe to share between threads.
    """

    def __init__(self, url: str, verify_tls: bool = True) -> None:
        self._url, self._verify_tls = url, verify_tls
        self._lock = threading.Lock()
        self._thread = threading.Thread()
        self._began = -EVERY_S
        self._lookout: Lookout | None = None
        self._newest: Live | Exception | None = None
        self._p95_ms: dict[tuple[str, str], deque[float]] = {}

    def newest(self) -> Live | None:
        """The newest look; None before there is one.

        Raises what the gateway does; ``timeout`` where a look takes too long.
        """
        with self._lock:
            if not self._thread.is_alive() and time.monotonic() >= self._began + EVERY_S:
                self._began = time.monotonic()
                self._thread = threading.Thread(target=self._look, daemon=True)
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
        """The p95 of a workflow at the last looks, in milliseconds, the newest last."""
        return list(self._p95_ms.get(_identity(live), ()))

    def _look(self) -> None:
        try:
            if self._lookout is None:
                credentials = credentials_for(self._url, os.environ)
                gateway = Gateway(self._url, credentials, self._verify_tls, _ANSWER_S)
                self._lookout = Lookout(gateway)
            found = self._lookout.look()
            self._p95_ms = {
                _identity(live): self._p95_ms.get(_identity(live), deque(maxlen=_REMEMBERED))
                for live in found.workflows
            }
            for live in found.workflows:
                if live.latency is not None:
                    self._p95_ms[_identity(live)].append(live.latency.p95_ms)
            self._newest = found
        except Exception as error:  # whoever asks is told
            if self._lookout is not None:
                self._lookout.gateway.close()
            self._lookout = None  # there may be other credentials soon
            self._newest = error


def _identity(live: LiveWorkflow) -> tuple[str, str]:
    return live.deployed.workflow, live.deployed.planner
