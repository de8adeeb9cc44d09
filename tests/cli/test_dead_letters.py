"""Dead letters of a deployed workflow are shown, run again and deleted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from chiron.generator.annotations import PLANNER, ROLE, WORKFLOW
from chiron.workflow.tracing import KEY_ANNOTATION
from tests.serving import Answering, served

LETTER = {"name": "17", "killed": 3, "bytes": 1200, "begins": ["[1, \x1b[2J]"]}


@dataclass
class Gateway:
    """Has one deployed workflow; notes what its wrap is asked, with which key."""

    url: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)
    status: int = 200


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    known = Gateway()
    functions = {
        "name": "ads",
        "image": "ads",
        "replicas": 1,
        "availableReplicas": 1,
        "annotations": {WORKFLOW: "ads", PLANNER: "pgp", ROLE: "entry", KEY_ANNOTATION: "key"},
    }
    provider = {"provider": "faasd", "orchestration": "containerd"}

    class Handler(Answering):
        def do_GET(self) -> None:
            is_info = self.path.startswith("/system/info")
            self.answer(200, {"provider": provider} if is_info else [functions])

        def do_POST(self) -> None:
            assert self.path == "/function/ads/_/dead-letters"
            known.asked.append((self.body().decode(), self.headers["X-Chiron-Trace"]))
            self.answer(known.status, [LETTER])

    with served(Handler) as known.url:
        yield known


def test_they_are_shown_and_their_escapes_are_escaped(chiron, gateway):
    result = chiron("dead-letters", "ads", "-g", gateway.url)
    assert result.status == 0, result.stderr
    assert "17" in result.stderr and "\x1b[2J" not in result.stderr
    assert chiron("dead-letters", "ads", "-g", gateway.url, "--json").json == [LETTER]
    assert gateway.asked == [("show", "key")] * 2


@pytest.mark.parametrize("verb", ["retry", "discard"])
def test_they_are_run_again_or_deleted(chiron, gateway, verb):
    result = chiron("dead-letters", "ads", "17", f"--{verb}", "-g", gateway.url, "--json")
    assert (result.status, gateway.asked[-1]) == (0, (f"{verb}\n17", "key"))
    assert result.json == [LETTER]


def test_what_is_none_is_an_error_and_nothing_is_done(chiron, gateway):
    result = chiron("dead-letters", "ads", "18", "--discard", "-g", gateway.url)
    assert result.status == 2 and "18" in result.error()
    assert gateway.asked == [("show", "key")]


@pytest.mark.parametrize("status, mended_by_caller", [(404, 2), (503, 1)])
def test_what_the_wrap_refuses_is_an_error(chiron, gateway, status, mended_by_caller):
    gateway.status = status
    result = chiron("dead-letters", "ads", "-g", gateway.url)
    assert result.status == mended_by_caller and str(status) in result.error()
