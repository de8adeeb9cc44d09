"""Wraps of buckets for tests: their images, documents and handlers, and what they have noted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chiron.workflow.buckets import parse_buckets

#: Appends what it gets to a file, and returns it; null where the text has "drop".
NOTE = """
from pathlib import Path

def handle(req):
    with Path("{file}").open("a") as file:
        file.write(req + "\\n")
    return "null" if "drop" in req else req
"""


def composing(wrap_image: Callable[..., Path]) -> Callable[..., Path]:
    """Makes an image of the workflow that a document of buckets defines."""

    def compose(
        document: dict[str, Any], handlers: dict[str, str], triggers: str = "", **others: Any
    ) -> Path:
        workflow = parse_buckets(document, "test")
        numbers = {task.name: number for number, task in enumerate(workflow.tasks)}
        entry = {"output": None, "states": numbers, "buckets": workflow.buckets}
        tasks = {numbers[task.name]: task.function for task in workflow.tasks}
        image = wrap_image(handlers, tasks=tasks, entry=entry, **others)
        if triggers:
            (image / "function" / "triggers").mkdir()
            (image / "function" / "triggers" / "mine.py").write_text(triggers)
        return image

    return compose


def window(trigger: dict[str, Any], function: str = "last", **fields: Any) -> dict[str, Any]:
    """Events go through `first` to a bucket, of which a function gets what fires."""
    return {
        "entry": "events",
        "buckets": {
            "events": {"trigger": "immediate", "function": "first", **fields},
            "held": {**trigger, "function": function},
        },
        "functions": {"first": {"gives": "held"}},
    }


def noting(path: Path) -> str:
    return NOTE.format(file=path)


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def metric(server: Any, name: str) -> float:
    text = server.request("GET", "/metrics").text
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return float(values.get(name, 0))
