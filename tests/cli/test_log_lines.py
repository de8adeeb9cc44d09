"""`chiron logs` finds what a function or an execution printed long ago, or says that it did not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest

from chiron.generator.annotations import FUNCTIONS, PLANNER, ROLE, WORKFLOW
from tests.serving import Answering, served

#: What a wrap printed: one line, and then many of another function.
LINES = ["[rare 1a2b3c4d] once", *(f"[often {number:08x}] again" for number in range(500))]


@pytest.fixture
def url() -> Iterator[str]:
    """A gateway with one wrap that runs both functions."""
    annotations = {WORKFLOW: "w", PLANNER: "pgp", ROLE: "entry", FUNCTIONS: "rare,often"}
    wrap = {"name": "w-wrap1", "replicas": 1, "availableReplicas": 1, "annotations": annotations}

    class Handler(Answering):
        def do_GET(self) -> None:
            place = urlsplit(self.path)
            if place.path == "/system/logs":
                tail = int(parse_qs(place.query)["tail"][0])
                told = [
                    {"name": "w-wrap1", "timestamp": f"{number:04}", "text": text}
                    for number, text in enumerate(LINES)
                ]
                self.answer(200, "\n".join(map(json.dumps, told[-tail:])).encode())
            else:
                self.answer(200, [wrap] if place.path == "/system/functions" else {})

    with served(Handler) as url:
        yield url


def test_the_last_lines_of_all_are_printed(chiron, url):
    printed = chiron("logs", "w", "-g", url, "--tail=2").stdout.splitlines()
    assert [line.partition("] ")[2] for line in printed] == ["again", "again"]
    assert "rare" not in chiron("logs", "w", "-g", url).stdout


@pytest.mark.parametrize("which", [["rare"], ["--execution=1a2b3c4d-55aa"]])
def test_what_was_printed_before_much_else_is_found(chiron, url, which):
    result = chiron("logs", "w", *which, "-g", url)
    assert result.stdout == f"0000 w-wrap1 {LINES[0]}\n"
    often = chiron("logs", "w", "often", "--tail=3", "-g", url).stdout
    assert len(often.splitlines()) == 3


def test_what_was_not_printed_is_said(chiron, url):
    result = chiron("logs", "w", "--execution", "99999999", "-g", url)
    assert (result.status, result.stdout) == (0, "")
    assert "no such line is among the last 10000 of w-wrap1" in result.stderr


def test_a_workflow_that_printed_nothing_is_said_to_have(chiron, url, monkeypatch):
    monkeypatch.setattr(f"{__name__}.LINES", [])
    result = chiron("logs", "w", "-g", url)
    assert (result.status, result.stdout) == (0, "")
    assert "no line so far of w-wrap1" in result.stderr
