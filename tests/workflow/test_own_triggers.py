"""Triggers that users write: what they fire, and that what they do wrong is told."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chiron.workflow.errors import ChironError
from chiron.workflow.flowing import Gave, run_buckets
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.model import Workflow
from chiron.wrap.core.buckets import triggers
from chiron.wrap.core.buckets.own import MODULE, OwnTrigger, TriggerError, loaded
from chiron.wrap.core.buckets.triggers import Batch, ByBatchSize, Item, StreamTrigger
from chiron.wrap.functions.module_file import module_of

PAIRS = """
from chiron_triggers import Batch, StreamTrigger

class Pairs(StreamTrigger):
    def __init__(self, most=2):
        super().__init__()
        self.items, self.most = [], most

    def on_object(self, item, now_s):
        self.items.append(item)
        if len(self.items) < self.most:
            return []
        items, self.items = self.items, []
        return [Batch(items, now_s)]
"""
WORKFLOW: dict[str, Any] = {
    "entry": ["in", "others"],
    "buckets": {
        "in": {"trigger": "triggers.Pairs", "function": "sum"},
        "others": {"trigger": "immediate", "function": "same"},
    },
}
Write = Callable[..., WorkflowFolder]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A folder with `WORKFLOW`, whose bucket `in` has `fields`, and a file of triggers."""

    def write(text: str | None = PAIRS, **fields: Any) -> WorkflowFolder:
        document = json.loads(json.dumps(WORKFLOW))
        document["buckets"]["in"] |= fields
        (tmp_path / "workflow.json").write_text(json.dumps(document))
        if text is not None:
            (tmp_path / "triggers.py").write_text(text)
        return WorkflowFolder.open(tmp_path)

    return write


def run(folder: WorkflowFolder, events: Any) -> Any:
    found = folder.workflow
    load = lambda file: module_of(folder.path / file, MODULE, triggers)  # noqa: E731
    workflow = Workflow(found.name, found.tasks, None, buckets=loaded(found.buckets, load))

    def call(function: str, text: str) -> Gave:
        value = json.loads(text)
        return Gave(json.dumps(sum(value) if function == "sum" else value))

    return json.loads(run_buckets(workflow, json.dumps(events).encode(), call).output)


def test_a_class_of_the_users_says_what_fires(write):
    assert run(write(), [1, 2, 3, 4, 5]) == {"sum": [3, 7], "same": [1, 2, 3, 4, 5]}
    folder = write(options={"most": 3})
    assert run(folder, [1, 2, 3, 4]) == {"sum": [6], "same": [1, 2, 3, 4]}


def test_opening_the_folder_runs_nothing_of_it(write, tmp_path):
    ran = tmp_path / "ran"
    folder = write(PAIRS + f"\nopen({str(ran)!r}, 'w')\n")
    assert folder.workflow.buckets["buckets"]["in"]["options"] == {}
    assert not ran.exists()
    run(folder, [1])
    assert ran.exists()


@pytest.mark.parametrize(
    ("text", "fields", "code", "said"),
    [
        (None, {}, "missing-file", "triggers.py cannot be read: No such file"),
        ("def", {}, "bad-trigger", "triggers.py is not Python: invalid syntax"),
        ("\0", {}, "bad-trigger", "null bytes"),
        ("x = " + "(" * 10_000, {}, "bad-trigger", "too many nested"),
        (PAIRS, {"trigger": "triggers.Pears"}, "bad-trigger", "there is Pairs"),
        ("Pairs = 1", {}, "bad-trigger", "there is no class"),
        ("#" * (1 << 20) + PAIRS, {}, "too-large", "1048576"),
        (PAIRS, {"trigger": "Triggers.Pairs"}, "bad-field", "FILE.CLASS for a class of your own"),
        (PAIRS, {"trigger": "../x.Pairs"}, "bad-field", "FILE.CLASS"),
    ],
)
def test_what_can_be_seen_without_running_it_is_refused_with_the_bucket(
    write, text, fields, code, said
):
    with pytest.raises(ChironError) as caught:
        write(text, **fields)
    assert (caught.value.code, caught.value.path) == (code, "buckets.in.trigger")
    assert said in caught.value.message


def test_a_file_that_is_elsewhere_is_not_read(write, tmp_path, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "triggers.py"
    elsewhere.write_text(PAIRS)
    (tmp_path / "triggers.py").symlink_to(elsewhere)
    with pytest.raises(ChironError) as caught:
        write(None)
    assert caught.value.code == "bad-link"


@pytest.mark.parametrize(
    ("fields", "code", "path"),
    [
        ({"options": [1]}, "bad-field", "buckets.in.options"),
        ({"window_ms": 1}, "unknown-field", "buckets.in.window_ms"),
    ],
)
def test_what_is_wrong_with_its_fields_is_named(write, fields, code, path):
    with pytest.raises(ChironError) as caught:
        write(**fields)
    assert (caught.value.code, caught.value.path) == (code, path)


def test_what_waits_for_it_cannot_be_durable(write, tmp_path):
    document = WORKFLOW | {"durable": True}
    (tmp_path / "workflow.json").write_text(json.dumps(document))
    (tmp_path / "triggers.py").write_text(PAIRS)
    with pytest.raises(ChironError, match="leave durable out"):
        WorkflowFolder.open(tmp_path)


CLASS = "from chiron_triggers import Batch, StreamTrigger\nclass Pairs(StreamTrigger):\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nowhere\nclass Pairs: pass", "triggers.py: ModuleNotFoundError: No module named"),
        ("class Pairs: pass\nexit(3)", "triggers.py: SystemExit: 3 (triggers.py:2)"),
        ("class Pairs: pass", "Pairs is no subclass of chiron_triggers.StreamTrigger"),
        (CLASS + "  def on_time(self, now_s): return []", "Pairs: TypeError: Can't instantiate"),
        (
            CLASS + "  def __init__(self): pass\n  def on_object(self, i, n): return []",
            "Pairs: TypeError: __init__ has to call super().__init__()",
        ),
        (
            CLASS + "  def on_object(self, i, n): return [][1]",
            "Pairs.on_object: IndexError: list index out of range (triggers.py:3)",
        ),
        (CLASS + "  def on_object(self, i, n): return 3", "on_object: TypeError: 'int' object"),
        (CLASS + "  def on_object(self, i, n): return [i]", "answers Item: a list of Batch"),
        (CLASS + "  def on_object(self, i, n): return [Batch([], n)]", "has to have objects"),
        (CLASS + "  def on_object(self, i, n): return [Batch([i, i], n)]", "has fired before"),
        (
            CLASS + "  def on_object(self, i, n):\n    self.due_s = None\n    return []",
            "Pairs.on_object: TypeError: '<' not supported",
        ),
    ],
)
def test_what_a_class_does_wrong_is_told_with_its_bucket(write, text, said):
    with pytest.raises((ChironError, TriggerError)) as caught:
        run(write(text), [1])
    error = caught.value
    assert isinstance(error, TriggerError) or error.code == "trigger-failed"
    assert str(error).partition("bucket in: ")[1] and said in str(error)


class Late(StreamTrigger[str]):
    """Fires in time, and forgets when that was."""

    def on_object(self, item: Item[str], now_s: float) -> list[Batch[str]]:
        self.item, self.due_s = item, now_s + 1
        return []

    def on_time(self, now_s: float) -> list[Batch[str]]:
        return [Batch([self.item], now_s)]


def test_a_time_that_is_left_where_it_was_is_told_and_asks_for_no_end():
    faults: list[TriggerError] = []
    trigger = OwnTrigger("in", Late, {}, faults)
    trigger.on_object(Item((1,), "a"), 0.0)
    assert (trigger.due_s, trigger.on_time(0.5)) == (1.0, ())
    assert [batch.items for batch in trigger.on_time(1.0)] == [(Item((1,), "a"),)]
    assert trigger.due_s == math.inf and not trigger.on_time(2.0)
    assert [str(each) for each in faults] == [
        "bucket in: Late.on_time: due_s has to be later then, or math.inf"
    ]
    trigger.on_object(Item((1,), "a"), 3.0)  # it comes again
    assert trigger.due_s == math.inf


class Again(ByBatchSize[str]):
    """Has what is given to it run again at once, by its own word."""

    def __init__(self) -> None:
        super().__init__(2)

    def due_for_rerun(self, now_s: float) -> list[tuple[int, ...]]:
        return [(1,)]


def test_one_may_be_made_of_another_and_say_what_runs_again():
    trigger = OwnTrigger[str]("in", Again, {}, [])
    trigger.rerun_after_s = 1.0
    trigger.on_source_started((7,), 0.0)
    assert trigger.due_s == 1.0
    assert trigger.due_for_rerun(0.5) == [(1,)]
    assert not trigger.on_object(Item((1,), "a"), 0.0)
    assert len(trigger.on_object(Item((2,), "b"), 0.0)) == 1
    trigger.on_object(Item((3,), "c"), 0.0)
    assert [item.value for batch in trigger.drain(0.0) for item in batch.items] == ["c"]
