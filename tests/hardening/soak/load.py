"""Clients of the wraps and the services, which know what every answer has to be."""

from __future__ import annotations

import hashlib
import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import requests

#: Between two requests of a client, so that a soak leaves the machine to others too.
PAUSE_S = 0.02
_TIMEOUT_S = 90
_RETRY_S = 0.1
_JOB_ENDS = {"done", "failed"}


@dataclass(frozen=True)
class Sample:
    """One request: whom to, when (monotonic), and whether the answer was right."""

    target: str
    start: float
    end: float
    right: bool


@dataclass
class Tally:
    """What came of all requests; `wrong` and `lost` have to stay empty."""

    samples: list[Sample] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    jobs: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    away: int = 0

    def add(self, target: str, start: float, said: str = "") -> None:
        """Count an answer: a right one, or the error that it named."""
        self.samples.append(Sample(target, start, time.monotonic(), not said))
        if said:
            self.errors[f"{target}: {said}"] += 1


class Load:
    """Threads that send requests until they are told to stop."""

    def __init__(self, gateway: str, services: str, targets: list[str]) -> None:
        self.tally = Tally()
        self._gateway = gateway
        self._services = services
        self._targets = targets
        self._over = threading.Event()

    @contextmanager
    def running(self, clients: int, inputs: dict[str, Any]) -> Iterator[Tally]:
        """Send for the length of the block, and wait for all answers."""
        works: list[Callable[[], None]] = [self._call_wraps] * clients
        works += [lambda: self._compute(inputs), lambda: self._deploy(inputs)]
        threads = [threading.Thread(target=self._guarded, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        try:
            yield self.tally
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self.tally.lost.append(f"a client ended: {error!r}")
            raise

    def _call_wraps(self) -> None:
        with requests.Session() as session:
            while not self._over.wait(PAUSE_S):
                for target in self._targets:
                    self._call(session, target)

    def _call(self, session: requests.Session, target: str) -> None:
        text = f"request {uuid.uuid4()}"
        start = time.monotonic()
        try:
            url = f"{self._gateway}/function/{target}"
            answer = session.post(url, text, timeout=_TIMEOUT_S)
        except requests.RequestException as error:
            self.tally.lost.append(f"{target}: {error!r}")
            return
        if answer.status_code == 200:
            if answer.json() != [hashlib.sha256(text.encode()).hexdigest(), text[::-1]]:
                self.tally.wrong.append(f"{target}: {text}: {answer.text}")
            self.tally.add(target, start)
        elif fault := _fault(answer):
            self.tally.add(target, start, fault)
        else:
            self.tally.lost.append(f"{target}: {answer.status_code} without a word")

    def _compute(self, inputs: dict[str, Any]) -> None:
        """Have plans made and predicted; the same input has the same answer."""
        body = {**inputs, "slo": "200ms"}
        first: Any = None
        while not self._over.wait(PAUSE_S):
            start = time.monotonic()
            answer = self._ask("POST", "/scheduler/schedule", json=body)
            if answer is None:
                continue
            if answer.status_code == 200:
                first = first or answer.json()
                if answer.json() != first:
                    self.tally.wrong.append(f"schedule: {answer.text}")
                self.tally.add("services", start)
            else:
                self.tally.add("services", start, _fault(answer))

    def _deploy(self, inputs: dict[str, Any]) -> None:
        """Submit jobs that deploy; each that was accepted has to end."""
        profile, platform = inputs["profile"], inputs["platform"]
        body = {"directory": "job", "slo": "10s", "samples": 3}
        body |= {"profile": {**profile, "workflow": "job"}, "platform": platform}
        while not self._over.is_set():
            key = {"Idempotency-Key": str(uuid.uuid4())}
            accepted = None
            while accepted is None:
                accepted = self._ask("POST", "/deployments", json=body, headers=key)
            if accepted.status_code != 202:
                self.tally.jobs[_fault(accepted)] += 1
                continue
            self._follow(accepted.json()["location"])

    def _follow(self, location: str) -> None:
        end = time.monotonic() + _TIMEOUT_S
        while time.monotonic() < end:
            answer = self._ask("GET", location)
            job = answer.json() if answer is not None and answer.ok else {"status": "unknown"}
            if job["status"] in _JOB_ENDS:
                code = job["error"]["code"] if job["status"] == "failed" else "done"
                self.tally.jobs[code] += 1
                return
            time.sleep(_RETRY_S)
        self.tally.lost.append(f"{location}: accepted, and never ended")

    def _ask(self, method: str, path: str, **content: Any) -> requests.Response | None:
        """What the services answer; None while they are away, or where they were killed."""
        try:
            return requests.request(method, self._services + path, timeout=_TIMEOUT_S, **content)
        except requests.Timeout:
            self.tally.lost.append(f"{path}: no answer")
        except requests.RequestException:
            self.tally.away += 1
        time.sleep(_RETRY_S)
        return None


def _fault(answer: requests.Response) -> str:
    """The error that an answer names: a wrap's code, or the gateway's status and its words."""
    try:
        return f"{answer.status_code} {answer.json()['code']}"
    except (ValueError, KeyError):
        words = answer.text.strip().partition(": ")[2].partition(":")[0]
        return f"{answer.status_code} {words}" if words else ""


def inputs_of(workflow: Any, profile: Any, platform: Any) -> dict[str, Any]:
    """What the services compute with, as JSON."""
    return {
        "workflow": workflow,
        "profile": json.loads(profile.model_dump_json(exclude_none=True)),
        "platform": json.loads(platform.model_dump_json(exclude_none=True)),
    }
