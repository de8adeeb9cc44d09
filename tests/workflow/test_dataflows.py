"""DataFlower's form becomes the state machine that its data means, or names what is wrong."""

from __future__ import annotations

from typing import Any

from chiron.workflow.dataflows import translate_dataflows
from chiron.workflow.folder import parse_workflow
from tests.rows import each_row


def to(function: str, data: str) -> dict[str, Any]:
    return {function: {"block": {data: None}}}


def block(takes: dict[str, str], gives: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A function's block: the types of what it takes, and type and destination of what it gives."""
    outputs = {
        data: {"type": kind} | ({"dest": dest} if dest else {})
        for data, (kind, dest) in gives.items()
    }
    inputs = {data: {"type": kind} for data, kind in takes.items()}
    return {"blocks": {"block": {"input_datas": inputs, "output_datas": outputs, **more}}}


def document(**functions: Any) -> dict[str, Any]:
    start = {"type": "NORMAL", "dest": to(next(iter(functions)), "text")}
    return {
        "workflow_name": "demo",
        "global_inputs": {"$USER.text": start},
        "templates": functions,
    }


SPLIT = block({"text": "NORMAL"}, {"words": ("FOREACH", to("count", "word"))})
COUNT = block({"word": "NORMAL"}, {"n": ("MERGE", to("sum", "all"))})
SUM = block({"all": "LIST"}, {"total": ("NORMAL", "$USER")})


def states(given: dict[str, Any]) -> dict[str, Any]:
    """The states of what a document is translated to, which is a machine that can be read."""
    workflow = parse_workflow(given)
    assert workflow.machine is not None
    return workflow.machine["States"]


def test_a_list_is_taken_apart_and_put_together():
    given = document(split=SPLIT, count=COUNT, sum=SUM)
    assert parse_workflow(given).name == "demo"
    found = states(given)
    assert found["split"]["Parameters"] == {"text.$": "$.INPUT.text"}
    each = found["count"]
    assert (each["Type"], each["ItemsPath"], each["Next"]) == ("Map", "$.split.words", "sum")
    assert each["ItemSelector"] == {"word.$": "$$.Map.Item.Value"}
    assert found["sum"] == {
        "Type": "Task",
        "Resource": "sum",
        "Parameters": {"all.$": "$.count[*].n"},
        "End": True,
    }


def test_the_papers_spelling_is_the_same():
    one = states(document(split=SPLIT, count=COUNT, sum=SUM))
    flows = {
        "split": {
            "FLU_0": {
                "input_datas": {"text": "$USER.text"},
                "output_datas": {
                    "words": {
                        "type": "FOREACH",
                        "destination": {"count": {"FLU_1": {"word": None}}},
                    }
                },
            }
        },
        "count": {
            "FLU_1": {
                "input_datas": {"word": {"type": "NORMAL"}},
                "output_datas": {
                    "n": {"type": "MERGE", "destination": {"sum": {"FLU_2": {"all": None}}}}
                },
            }
        },
        "sum": {
            "FLU_2": {
                "input_datas": {"all": {"type": "LIST"}},
                "output_datas": {"total": {"type": "NORMAL", "destination": "$USER"}},
            }
        },
    }
    assert states({"Workflow_name": "demo", "dataflows": flows}) == one


def test_data_for_several_runs_them_side_by_side_and_the_one_that_takes_both_after_them():
    found = states(
        document(
            cut=block({"text": "NORMAL"}, {"p": ("NORMAL", to("left", "x") | to("right", "x"))}),
            left=block({"x": "NORMAL"}, {"l": ("NORMAL", to("join", "l"))}),
            right=block({"x": "NORMAL"}, {"r": ("NORMAL", to("join", "r"))}),
            join=block({"l": "NORMAL", "r": "NORMAL"}, {"done": ("NORMAL", "$USER")}),
        )
    )
    branches = found["parallel"]["Branches"]
    assert [branch["StartAt"] for branch in branches] == ["left", "right"]
    assert found["join"]["Parameters"] == {
        "l.$": "$.parallel[0].left.l",
        "r.$": "$.parallel[1].right.r",
    }


def test_what_several_give_to_a_list_is_one():
    found = states(
        document(
            cut=block({"text": "NORMAL"}, {"p": ("NORMAL", to("left", "x") | to("join", "all"))}),
            left=block({"x": "NORMAL"}, {"l": ("NORMAL", to("join", "all"))}),
            join=block({"all": "LIST"}, {"done": ("NORMAL", "$USER")}),
        )
    )
    assert found["left"]["Next"] == "join", "data that is there earlier waits"
    assert found["join"]["Parameters"] == {"all.$": "States.Array($.cut.p, $.left.l)"}


def test_a_switch_decides_by_its_own_data():
    found = states(
        document(
            look=block(
                {"text": "NORMAL"},
                {"odd": ("NORMAL", None), "word": ("NORMAL", None)},
                type="SWITCH",
                conditions={
                    "odd==True": {"word": to("hide", "word") | to("log", "word")},
                    "default": {"virtual.start": "$USER"},
                },
            ),
            hide=block({"word": "NORMAL"}, {"h": ("NORMAL", to("log", "hidden"))}),
            log=block({"word": "NORMAL", "hidden": "NORMAL"}, {"done": ("NORMAL", "$USER")}),
        )
    )
    choice = found[found["look"]["Next"]]
    (rule,) = choice["Choices"]
    assert rule == {"Variable": "$.look.odd", "BooleanEquals": True, "Next": "hide"}
    assert found[choice["Default"]]["InputPath"] == "$.look"
    assert found["log"]["Parameters"] == {"word.$": "$.look.word", "hidden.$": "$.hide.h"}


@each_row(
    ("functions", "code", "path"),
    [
        (
            {"split": SPLIT, "count": COUNT},
            "unknown-next",
            "templates.count.blocks.block.output_datas.n",
        ),
        (
            {"split": SPLIT, "count": COUNT, "sum": block({"more": "LIST"}, {})},
            "unknown-read",
            "templates.count.blocks.block.output_datas.n",
        ),
        (
            {"split": SPLIT, "count": COUNT, "sum": block({"all": "NORMAL"}, {})},
            "bad-field",
            "templates.count.blocks.block.output_datas.n",
        ),
        (
            {
                "split": SPLIT,
                "count": block({"word": "NORMAL"}, {"n": ("NORMAL", to("sum", "all"))}),
                "sum": SUM,
            },
            "unsupported-field",
            "templates.count.blocks.block.output_datas.n",
        ),
        (
            {"one": block({"text": "NORMAL", "x": "NORMAL"}, {})},
            "unknown-read",
            "templates.one.blocks.block.input_datas.x",
        ),
        (
            {"one": block({"text": "NORMAL"}, {"x": ("MERGE", "$USER")})},
            "bad-field",
            "templates.one.blocks.block.output_datas.x",
        ),
        (
            {"one": block({"text": "ANY"}, {})},
            "bad-field",
            "templates.one.blocks.block.input_datas.text.type",
        ),
        (
            {
                "split": block(
                    {"text": "NORMAL"},
                    {"words": ("FOREACH", {"count": {"block": {"word": {"size": 8}}}})},
                ),
                "count": COUNT,
                "sum": SUM,
            },
            "unknown-field",
            "templates.split.blocks.block.output_datas.words.dest.count.block.word.size",
        ),
        (
            {"one": block({"text": "NORMAL"}, {}, typ="SWITCH")},
            "unknown-field",
            "templates.one.blocks.block.typ",
        ),
        (
            {"one": block({"text": "NORMAL"}, {}, conditions={"odd==True": {}})},
            "unknown-read",
            "templates.one.blocks.block.conditions.odd==True",
        ),
        (
            {
                "one": block(
                    {"text": "NORMAL"},
                    {"odd": ("NORMAL", None)},
                    conditions={"default": "$USER", "odd==True": "$USER"},
                )
            },
            "bad-field",
            "templates.one.blocks.block.conditions.default",
        ),
        (
            {"one": {"blocks": {"a": {}, "b": {}}}},
            "unsupported-field",
            "templates.one.blocks",
        ),
    ],
)
def test_what_is_wrong_is_named(functions, code, path, refused):
    error = refused(translate_dataflows, document(**functions))
    first = error.parts[0] if error.parts else error
    assert (first.code, first.path) == (code, path)


def test_functions_that_decide_side_by_side_what_is_next_are_refused(refused):
    def decides(target: str) -> dict[str, Any]:
        conditions = {
            "odd==True": {"virtual.start": to("hide", "start")},
            "default": {"virtual.start": to("show", target)},
        }
        return block(
            {"x": "NORMAL"}, {"odd": ("NORMAL", None)}, type="SWITCH", conditions=conditions
        )

    given = document(
        cut=block({"text": "NORMAL"}, {"p": ("NORMAL", to("one", "x") | to("two", "x"))}),
        one=decides("first"),
        two=decides("second"),
        hide=block({"start": "NORMAL"}, {"h": ("NORMAL", "$USER")}),
        show=block({"first": "NORMAL", "second": "NORMAL"}, {"s": ("NORMAL", "$USER")}),
    )
    error = refused(translate_dataflows, given)
    assert error.code == "not-series-parallel"
    assert set(error.functions) >= {"one", "two"}
