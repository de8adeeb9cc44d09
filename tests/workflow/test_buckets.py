"""Workflows of buckets: what documents say, and what fires for the events of a request."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.workflow.buckets import parse_buckets
from chiron.workflow.data import Typed
from chiron.workflow.errors import ChironError
from chiron.workflow.flowing import Gave, run_buckets
from chiron.workflow.folder import parse_workflow

ADS: dict[str, Any] = {
    "entry": "events",
    "buckets": {
        "clicks": {"trigger": "by-time", "window_ms": 1000, "function": "count"},
        "events": {"trigger": "immediate", "function": "filter"},
        "views": {"trigger": "immediate", "functions": ["campaign"]},
    },
    "functions": {"filter": {"gives": "views"}, "campaign": {"gives": ["clicks"]}},
}


def bucket(trigger: str, function: str, **fields: Any) -> dict[str, Any]:
    return {"trigger": trigger, "function": function, **fields}


def run(
    document: dict[str, Any], events: Any, **functions: Callable[[Any], Any]
) -> tuple[dict[str, list[Any]], list[str]]:
    """What comes out of `events`, and which functions ran; those not given return their input."""
    ran = list[str]()

    def call(function: str, text: str) -> Gave:
        ran.append(function)
        found = functions.get(function, lambda value: value)(json.loads(text))
        if isinstance(found, Gave):
            return found
        return Gave(Typed(json.dumps(found), "application/json"))  # as functions alone give it

    done = run_buckets(parse_workflow(document), json.dumps(events).encode(), call)
    return json.loads(done.output), ran


def test_functions_are_tasks_after_those_that_give_to_their_buckets():
    workflow = parse_workflow(ADS, "ads")
    sources = {task.name: task.source for task in workflow.tasks}
    assert sources == {"filter": None, "campaign": "filter", "count": "campaign"}
    assert workflow.output == "count"
    assert list(workflow.buckets["buckets"]) == ["events", "views", "clicks"]


def test_a_window_has_what_came_through_and_null_is_no_object():
    keep = lambda event: event if event["type"] == "view" else None  # noqa: E731
    events = [{"type": kind, "n": n} for n, kind in enumerate(["view", "click", "view"])]
    output, ran = run(ADS, events, filter=keep, campaign=lambda event: event["n"], count=sum)
    assert output == {"count": [2]}
    assert sorted(ran) == ["campaign"] * 2 + ["count"] + ["filter"] * 3


def test_what_is_no_list_is_one_event():
    output, _ = run(ADS, {"n": 1})
    assert output == {"count": [[{"n": 1}]]}


def test_names_choose_functions():
    buckets = {
        "clicks": bucket("by-name", "clicked", names="click", name_from="type"),
        "others": bucket("by-name", "other", names=["view", "buy"], name_from="type"),
    }
    document = {"entry": ["clicks", "others"], "buckets": buckets}
    events = [{"type": each} for each in ("buy", "click", "noise")]
    output, _ = run(document, events, clicked=lambda e: e["type"], other=lambda e: e["type"])
    assert output == {"clicked": ["click"], "other": ["buy"]}


def test_a_set_joins_what_functions_give_of_one_request_in_its_order():
    buckets = {
        "in": {"trigger": "immediate", "functions": ["a", "b"]},
        "both": bucket("by-set", "join", names=["b", "a"]),
    }
    functions = {"a": {"gives": "both"}, "b": {"gives": "both"}}
    document = {"entry": "in", "buckets": buckets, "functions": functions}
    output, _ = run(document, 1, a=lambda _: "A", b=lambda _: "B")
    assert output == {"join": [["B", "A"]]}


def test_two_of_three_copies_of_a_function_are_enough():
    copies = {f"ask-{n}": {"function": "ask", "gives": "answers"} for n in range(3)}
    buckets = {
        "in": {"trigger": "immediate", "functions": list(copies)},
        "answers": bucket("redundant", "merge", k=2, n=3),
    }
    output, ran = run({"entry": "in", "buckets": buckets, "functions": copies}, 7)
    assert output == {"merge": [[7, 7]]}
    assert ran.count("ask") == 3 and ran.count("merge") == 1


def test_a_join_has_as_many_objects_as_the_producer_made():
    buckets = {
        "in": bucket("immediate", "split"),
        "parts": bucket("immediate", "square"),
        "squares": bucket("dynamic-join", "join"),
    }
    functions = {"split": {"gives": {"each": "parts"}}, "square": {"gives": "squares"}}
    document = {"entry": "in", "buckets": buckets, "functions": functions}
    output, _ = run(document, 4, split=lambda n: list(range(n)), square=lambda n: n * n)
    assert output == {"join": [[0, 1, 4, 9]]}
    output, _ = run(document, 0, split=lambda _: [])
    assert output == {"join": []}


def test_a_shuffle_runs_each_group_when_all_mappers_have_ended():
    buckets = {
        "texts": bucket("immediate", "map"),
        "words": bucket("dynamic-group", "reduce", group_from="word"),
    }
    document = {
        "entry": "texts",
        "buckets": buckets,
        "functions": {"map": {"gives": {"each": "words"}}},
    }
    output, ran = run(
        document,
        ["a b a", "b"],
        map=lambda text: [{"word": word} for word in text.split()],
        reduce=lambda items: [items[0]["word"], len(items)],
    )
    assert sorted(output["reduce"]) == [["a", 2], ["b", 2]]
    assert ran.index("reduce") == ran.count("map") == 2


SHUFFLE: dict[str, Any] = {
    "entry": "texts",
    "buckets": {
        "texts": bucket("immediate", "map"),
        "words": bucket("dynamic-group", "reduce", group_from="word"),
    },
    "functions": {"map": {"gives": {"each": "words"}}},
}


@given(st.lists(st.lists(st.sampled_from(["a", "b", "a b"]), max_size=4), max_size=4))
def test_a_shuffle_of_what_is_emitted_by_group_equals_that_of_what_is_returned(texts):
    returned, _ = run(
        SHUFFLE, texts, map=lambda words: [{"word": word, "n": len(words)} for word in words]
    )

    def emit(words: list[str]) -> Gave:
        each = [("words", word, json.dumps({"word": word, "n": len(words)})) for word in words]
        return Gave("", each)

    words = bucket("dynamic-group", "reduce")
    emitting = SHUFFLE | {
        "buckets": SHUFFLE["buckets"] | {"words": words},
        "functions": {"map": {"gives": "words"}},
    }
    assert run(emitting, texts, map=emit)[0] == returned


def test_an_emitted_group_counts_and_not_the_field():
    emit = lambda _: Gave("", [("words", "x", '{"word":1}'), ("words", "x", '{"word":2}')])  # noqa: E731
    output, _ = run(SHUFFLE, "", map=emit, reduce=len)
    assert output == {"reduce": [2]}


def test_names_that_a_function_emits_are_those_of_objects():
    buckets = {
        "in": bucket("immediate", "split"),
        "both": bucket("by-set", "join", names=["left", "right"]),
        "lefts": bucket("by-name", "count", names="left"),
        "alone": bucket("by-batch-size", "sum", size=2),
    }
    split = {"gives": ["both", "lefts", "alone"], "emits": ["left", "right"]}
    document = {"entry": "in", "buckets": buckets, "functions": {"split": split}}
    emitted = [("right", None, "2"), ("alone", None, "4"), ("left", None, "1"), ("left", None, "")]
    output, _ = run(document, 0, split=lambda _: Gave("null", emitted), sum=sum)
    # What goes to a bucket by its name goes to no other; the rest goes to all, in the order in
    # which it is emitted.
    assert output == {"join": [[1, 2]], "count": [1], "sum": [6, 1]}


def test_what_is_returned_comes_after_what_is_emitted():
    document = SHUFFLE | {"buckets": {**SHUFFLE["buckets"], "words": bucket("dynamic-join", "f")}}
    emit = lambda _: Gave("[3, 4]", [("words", None, "1"), ("words", None, "2")])  # noqa: E731
    assert run(document, [0], map=emit)[0] == {"f": [[1, 2, 3, 4]]}


def test_what_no_bucket_takes_is_the_functions_fault_with_what_there_is():
    with pytest.raises(ChironError) as caught:
        run(SHUFFLE, 0, map=lambda _: Gave("", [("wrods", None, "1")]))
    assert (caught.value.code, caught.value.functions) == ("function-failed", ("map",))
    assert "map emits wrods" in caught.value.message and "there is words" in caught.value.message
    with pytest.raises(ChironError, match="there is neither"):
        run(
            SHUFFLE,
            ["a"],
            map=lambda _: [{"word": 1}],
            reduce=lambda _: Gave("", [("x", None, "1")]),
        )


@pytest.mark.parametrize(
    ("split", "code", "field"),
    [
        ({"emits": "left"}, "missing-field", "gives"),
        ({"gives": "both", "emits": ["both"]}, "bad-field", "emits"),
        ({"gives": "both", "emits": ["output"]}, "bad-name", "emits"),
        ({"gives": "both", "emits": ["a b"]}, "bad-name", "emits"),
        ({"gives": "both", "emits": ["a", "a"]}, "bad-field", "emits"),
    ],
)
def test_what_is_wrong_with_what_a_function_says_it_emits_is_named(split, code, field):
    buckets = {"in": bucket("immediate", "split"), "both": bucket("by-set", "join")}
    with pytest.raises(ChironError) as caught:
        parse_workflow({"entry": "in", "buckets": buckets, "functions": {"split": split}})
    first = caught.value.parts[0] if caught.value.parts else caught.value
    assert (first.code, first.path) == (code, f"functions.split.{field}")


def test_a_set_waits_for_nothing_that_nobody_says_to_emit():
    buckets = {"in": bucket("immediate", "split"), "both": bucket("by-set", "join", names=["lfet"])}
    functions = {"split": {"gives": "both", "emits": "left"}}
    with pytest.raises(ChironError) as caught:
        parse_workflow({"entry": "in", "buckets": buckets, "functions": functions})
    assert (caught.value.code, caught.value.path) == ("unknown-function", "buckets.both.names")


def test_batches_have_their_size_and_the_rest_comes_last():
    document = {"entry": "in", "buckets": {"in": bucket("by-batch-size", "f", size=2)}}
    assert run(document, [1, 2, 3])[0] == {"f": [[1, 2], [3]]}


@pytest.mark.parametrize(
    ("change", "code", "path"),
    [
        ({"buckets": {}}, "bad-field", "buckets"),
        ({"entry": "nowhere"}, "unknown-bucket", "entry"),
        ({"extra": 1}, "unknown-field", "extra"),
        ({"functions": {"filter": {"gives": "vews"}}}, "unknown-bucket", "functions.filter.gives"),
        ({"functions": {"idle": {}}}, "unreachable", "functions.idle"),
        ({"functions": {"filter": {"gives": 3}}}, "bad-field", "functions.filter.gives"),
        ({"functions": {"count": {"gives": "events"}}}, "unreachable", "buckets.clicks"),
        ({"name": 3}, "bad-field", "name"),
    ],
)
def test_what_is_wrong_is_named_with_its_path(change, code, path):
    with pytest.raises(ChironError) as caught:
        parse_workflow(ADS | change)
    first = caught.value.parts[0] if caught.value.parts else caught.value
    assert (first.code, first.path) == (code, path)


@pytest.mark.parametrize(
    ("fields", "code", "field"),
    [
        ({"trigger": "hourly", "function": "f"}, "bad-field", "trigger"),
        ({"function": "f"}, "missing-field", "trigger"),
        ({"trigger": "immediate"}, "missing-field", "function"),
        ({"trigger": "immediate", "function": "f", "functions": ["f"]}, "bad-field", "functions"),
        ({"trigger": "immediate", "function": "f", "window_ms": 1}, "unknown-field", "window_ms"),
        (bucket("by-time", "f"), "missing-field", "window_ms"),
        (bucket("by-time", "f", window_ms=0), "bad-field", "window_ms"),
        (bucket("by-batch-size", "f", size=0), "bad-field", "size"),
        (bucket("by-batch-size", "f", size=True), "bad-field", "size"),
        (bucket("redundant", "f", k=3, n=2), "bad-field", "k"),
        (bucket("dynamic-group", "f"), "missing-field", "group_from"),
        (bucket("by-set", "f", names=["a"]), "missing-field", "name_from"),
        (bucket("by-name", "f", name_from="type"), "missing-field", "names"),
        (bucket("immediate", "f", attempts=11), "bad-field", "attempts"),
    ],
)
def test_what_is_wrong_with_a_bucket_is_named_with_its_field(fields, code, field):
    with pytest.raises(ChironError) as caught:
        parse_buckets({"entry": "in", "buckets": {"in": fields}}, "demo")
    assert (caught.value.code, caught.value.path) == (code, f"buckets.in.{field}")


def test_functions_that_give_to_each_other_in_a_circle_are_refused():
    buckets = {"a": bucket("immediate", "f"), "b": bucket("immediate", "g")}
    functions = {"f": {"gives": "b"}, "g": {"gives": "a"}}
    with pytest.raises(ChironError, match="cycle"):
        parse_workflow({"entry": "a", "buckets": buckets, "functions": functions})
