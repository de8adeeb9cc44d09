"""Wraps of two builds on one gateway: each answer is wholly of one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

ENTRY, OTHER = "test-wrap1", "test-wrap2"
HANDLER = """
import os, time
def handle(req):
    with open(os.environ["runs"], "a") as runs:
        runs.write(os.environ["version"] + "\\n")
    time.sleep(float(os.environ.get("DELAY", "0")))
    text = req if isinstance(req, str) else req.decode()
    return text + " " + os.environ["version"]
"""
INPUTS = {0: None, 1: 0}


class Builds:
    """An entry that runs a function and then calls another wrap, which are of any builds."""

    def __init__(self, image: Any, start: Any, gateway: Any, folder: Any, attempts: int) -> None:
        self._start, self.gateway = start, gateway
        self._runs = folder / "runs"
        common = {
            "inputs": INPUTS,
            "attempts": attempts,
            "timeout_s": 4.0 if attempts == 1 else 20.0,
        }
        entry = {"output": 1, "remotes": {OTHER: {1: "g"}}}
        self._images = {
            ENTRY: image({"f": HANDLER}, name=ENTRY, entry=entry, **common),
            OTHER: image(
                {"g": HANDLER},
                [[1]],
                tasks={1: "g"},
                name=OTHER,
                remotes={ENTRY: {0: "f"}},
                **common,
            ),
        }

    def add(self, name: str, build: str, **more: str) -> Any:
        """A replica, which the gateway calls from now on."""
        settings = {"gateway_url": self.gateway.url, "chiron_trace_key": build, "version": build}
        settings |= more
        server = self._start(self._images[name], runs=str(self._runs), **settings)
        self.gateway.ports[name] = server.port
        return server

    @property
    def runs(self) -> list[str]:
        """The build of each task that has begun."""
        return self._runs.read_text().split() if self._runs.exists() else []


@pytest.fixture
def builds(wrap_image: Any, start: Any, gateway: Any, tmp_path: Any) -> Callable[..., Builds]:
    return lambda attempts=2: Builds(wrap_image, start, gateway, tmp_path, attempts)


def test_a_request_goes_to_the_entry_of_the_other_wrap_s_build(builds: Any) -> None:
    deployed = builds()
    old = deployed.add(ENTRY, "old")
    deployed.add(OTHER, "new")
    deployed.add(ENTRY, "new")
    answer = old.request(body="x")
    assert (answer.status, answer.text) == (200, "x new new")
    assert deployed.runs == ["old", "new", "new"]


def test_a_request_is_not_handed_back(builds: Any, in_background: Any, eventually: Any) -> None:
    deployed = builds()
    old, new = deployed.add(ENTRY, "old"), deployed.add(ENTRY, "new")
    deployed.add(OTHER, "a third")
    asked = in_background(old.request, body="x")
    assert eventually(lambda: deployed.gateway.calls > 6)
    deployed.add(OTHER, "new")
    assert asked.result().text == "x new new"
    assert deployed.runs == ["old", "new", "new"]
    assert new.request(body="y").text == "y new new"


def test_an_entry_takes_nothing_that_its_build_cannot_end(builds, in_background, eventually):
    """The last wrap of its build may have ended: it would wait until the deadline."""
    deployed = builds()
    new, _ = deployed.add(ENTRY, "new"), deployed.add(ENTRY, "old")
    deployed.add(OTHER, "a third")
    asked = in_background(new.request, body="x")
    assert eventually(lambda: deployed.gateway.calls > 6)
    deployed.add(OTHER, "new")
    assert asked.result().text == "x new new"
    assert deployed.runs == ["new", "new"]


def test_an_entry_gives_a_request_back_whose_last_replica_of_its_build_has_ended(
    builds: Any, in_background: Any, eventually: Any
) -> None:
    deployed = builds()
    new = deployed.add(ENTRY, "new")
    deployed.add(ENTRY, "old")
    old = deployed.add(OTHER, "old", DELAY="1")
    asked = in_background(new.request, body="x")
    assert eventually(lambda: deployed.runs[-2:] == ["old", "old"])
    old.process.kill()
    deployed.add(OTHER, "new")
    assert asked.result().text == "x new new"
    assert deployed.runs == ["new", "old", "old", "new"]


def test_requests_wait_until_the_other_wrap_is_of_their_build_and_are_not_handed_back(
    builds: Any, in_background: Any, eventually: Any
) -> None:
    deployed = builds()
    new = deployed.add(ENTRY, "new")
    deployed.add(OTHER, "old")
    asked = [in_background(new.request, body=f"{number}") for number in range(8)]
    assert eventually(lambda: deployed.gateway.calls > 50)
    deployed.add(OTHER, "new")
    answers = [each.result().text for each in asked]
    assert answers == [f"{number} new new" for number in range(8)]
    assert set(deployed.runs) == {"new"}


def test_with_one_attempt_no_task_begins_elsewhere_and_the_error_says_what_to_deploy(builds):
    deployed = builds(attempts=1)
    old = deployed.add(ENTRY, "old")
    deployed.add(OTHER, "new")
    deployed.add(ENTRY, "new")
    answer = old.request(body="x", X_Chiron_Timeout="1")
    assert answer.status in (503, 504)
    assert deployed.runs == ["old"]
