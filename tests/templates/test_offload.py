"""What waits too long for a busy process is run by another replica of the wrap."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

#: Says which replica has run it; where it is told to, it waits for a file first.
HANDLER = """
import os, pathlib, time

def handle(req):
    text = req if isinstance(req, str) else req.decode()
    if text.startswith("wait "):
        pathlib.Path(text[5:] + " waits").touch()
        while not pathlib.Path(text[5:]).exists():
            time.sleep(0.01)
    if text == "fail":
        raise ValueError(text)
    return str(os.getpgid(os.getppid()))
"""
FIRST = "def handle(req):\n    return req\n"


class Replicas:
    """Two replicas of a wrap with one worker each; clients ask the first."""

    def __init__(self, image: Any, start: Any, gateway: Any, folder: Path) -> None:
        secrets = folder / "secrets"
        secrets.mkdir()
        (secrets / "chiron-direct").write_text("a secret")
        made = image(
            {"first": FIRST, "f": HANDLER},
            [[0], [1]],
            name="test-wrap1",
            mechanism="pool",
            inputs={0: None, 1: 0},
            entry={"output": 1},
        )
        settings = {
            "gateway_url": gateway.url,
            "secrets_dir": str(secrets),
            "chiron_trace_key": "key",
            "pool_concurrency": "1",
        }
        self.one, self.other = (start(made, **settings) for _ in range(2))
        gateway.ports["test-wrap1"] = self.other.port  # the next that asks hears of it
        self._folder = folder

    def waits(self, name: str) -> str:
        return f"wait {self._folder / name}"

    def begun(self, name: str) -> bool:
        return (self._folder / f"{name} waits").exists()

    def go_on(self, name: str) -> None:
        (self._folder / name).touch()


@pytest.fixture
def replicas(wrap_image: Any, start: Any, gateway: Any, tmp_path: Path) -> Replicas:
    return Replicas(wrap_image, start, gateway, tmp_path)


def test_what_waits_goes_to_a_replica_with_room_and_its_answer_or_error_comes_back(
    replicas: Replicas, in_background: Any, eventually: Callable[..., bool]
) -> None:
    first = in_background(replicas.one.request, body=replicas.waits("a"))
    assert eventually(lambda: replicas.begun("a"))
    second = replicas.one.request(body="b")
    said = replicas.one.request(body="fail")
    replicas.go_on("a")
    assert second.text == str(replicas.other.process.pid)
    assert (said.status, said.json["code"], said.json["function"]) == (500, "raised", "f")
    assert first.result().text == str(replicas.one.process.pid)


def test_where_no_replica_has_room_it_waits_for_its_own(replicas, in_background, eventually):
    busy = [in_background(replicas.one.request, body=replicas.waits("a"))]
    assert eventually(lambda: replicas.begun("a"))
    busy.append(in_background(replicas.other.request, body=replicas.waits("b")))
    assert eventually(lambda: replicas.begun("b"))
    third = in_background(replicas.one.request, body="c")
    replicas.go_on("a")
    assert third.result().text == str(replicas.one.process.pid)
    replicas.go_on("b")
    assert [each.result().status for each in busy] == [200, 200]


def test_what_a_killed_replica_was_lent_runs_here(replicas, in_background, eventually):
    first = in_background(replicas.one.request, body=replicas.waits("a"))
    assert eventually(lambda: replicas.begun("a"))
    second = in_background(replicas.one.request, body=replicas.waits("b"))
    assert eventually(lambda: replicas.begun("b"))
    replicas.other.process.kill()
    replicas.go_on("a")
    replicas.go_on("b")
    assert {each.result().text for each in (first, second)} == {str(replicas.one.process.pid)}
