"""A trigger that a user wrote decides when a bucket of a wrap fires."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.templates.bucket_workflows import composing, lines, metric, noting, window

#: Fires with what has come when nothing has for a moment; fails with "bad" ones.
CALM = """
import math
from chiron_triggers import Batch, StreamTrigger

class Calm(StreamTrigger):
    def __init__(self, quiet_ms):
        super().__init__()
        self.quiet_s, self.items = quiet_ms / 1000, []

    def on_object(self, item, now_s):
        if item.name == "bad":
            raise KeyError(item.name)
        self.items.append(item)
        self.size += item.size
        self.due_s = now_s + self.quiet_s
        return []

    def on_time(self, now_s):
        items, self.items, self.size, self.due_s = self.items, [], 0, math.inf
        return [Batch(items, now_s)]
"""
OWN = {"trigger": "mine.Calm", "options": {"quiet_ms": 300}, "name_from": "kind"}


@pytest.fixture
def compose(wrap_image: Callable[..., Path]) -> Callable[..., Path]:
    return composing(wrap_image)


def test_where_a_users_trigger_fails_other_buckets_and_objects_go_on(
    compose, start, tmp_path, eventually
):
    last, other = tmp_path / "last", tmp_path / "other"
    document = window(OWN)
    document["buckets"]["others"] = {"trigger": "immediate", "function": "other"}
    document["functions"]["first"] = {"gives": ["held", "others"]}
    handlers = {"first": "handle = str", "last": noting(last), "other": noting(other)}
    server = start(compose(document, handlers, CALM))
    assert server.request(body='[{"kind": "bad"}, {"kind": "good"}]').status == 202
    assert eventually(lambda: lines(last) == [[{"kind": "good"}]] and len(lines(other)) == 2)
    said = "trigger-failed: bucket held: Calm.on_object: KeyError: 'bad' (mine.py:12)"
    assert said in server.log.read_text()
    assert metric(server, 'chiron_firing_failures_total{bucket="held"}') == 1
    answer = server.request(body='[{"kind": "bad"}]', X_Chiron_Alone="1")
    assert (answer.status, answer.json["code"]) == (500, "trigger-failed")
    assert "bucket held" in answer.json["message"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nowhere\n", "bucket held: mine.py: ModuleNotFoundError"),
        (CALM.replace("quiet_ms", "calm_ms"), "bucket held: Calm: TypeError: Calm.__init__() got"),
    ],
)
def test_a_wrap_whose_users_trigger_cannot_be_made_says_so_and_ends(
    compose, run_to_end, text, said
):
    handlers = {"first": "handle = str", "last": "handle = str"}
    status, log = run_to_end(compose(window(OWN), handlers, text))
    assert status == 1 and f"trigger-failed: {said}" in log
