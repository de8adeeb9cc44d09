"""FaaSFlow's nested and flat forms become the graphs that they mean, or name what is wrong."""

from __future__ import annotations

from typing import Any

from chiron.workflow.faasflow import translate_flat
from chiron.workflow.faasflow_nested import translate_nested
from chiron.workflow.folder import parse_workflow
from tests.rows import each_row


def function(name: str, **more: Any) -> dict[str, Any]:
    """A function of the nested form, which reads what `more` names by its argument."""
    reads = [{"target": to, "source": source} for to, source in more.pop("reads", {}).items()]
    mapped = {"inputMappings": reads} if reads else {}
    return {"name": name, "type": "function", "source": f"{name}-code", **mapped, **more}


def block(kind: str, *inner: Any, name: str = "demo", **more: Any) -> dict[str, Any]:
    field = {"sequence": "steps", "parallel": "branches", "switch": "choices"}[kind]
    return {"name": name, "type": kind, field: list(inner), **more}


def when(condition: str, go: dict[str, Any]) -> dict[str, Any]:
    return {"condition": condition, "go": go}


def read(source: str, kind: str = "pass") -> dict[str, Any]:
    step, _, field = source.partition(".")
    return {"type": kind, "value": {"function": step, "parameter": field}, "size": 8}


def flat(name: str, *after: str, kind: str = "pass", **more: Any) -> dict[str, Any]:
    """A function of the flat form, with what comes after it."""
    outputs = {field: {"type": "pass", "size": 8} for field in more.pop("gives", ())}
    following = {"next": {"type": kind, "nodes": list(after)}} if after else {}
    return {"name": name, "source": name, "runtime": 0.5, "output": outputs, **following, **more}


def states(document: dict[str, Any]) -> dict[str, Any]:
    """The states of what a document is translated to, which is a machine that can be read."""
    workflow = parse_workflow(document, "demo")
    assert workflow.machine is not None
    return workflow.machine["States"]


def test_functions_that_name_no_data_are_a_plain_dag():
    nested = block(
        "sequence",
        function("a"),
        block("parallel", function("b"), block("sequence", function("c"), function("d"))),
        function("e"),
    )
    found = translate_nested(nested).document
    assert found["tasks"] == {name: f"{name}-code" for name in "abcde"}
    assert sorted(found["edges"]) == [list(e) for e in ("ab", "ac", "be", "cd", "de")]
    assert parse_workflow(nested).name == "demo"


def test_branches_after_branches_wait_for_all_of_them():
    document = block(
        "sequence",
        block("parallel", function("a"), function("b"), name="one"),
        block("parallel", function("c"), function("d"), name="two"),
    )
    workflow = parse_workflow(document)
    assert workflow.by_name["c"].source == workflow.by_name["d"].source == ("a", "b")


def test_what_functions_read_is_taken_from_the_request_and_from_what_others_gave():
    found = states(
        block(
            "sequence",
            function("draw", reads={"n": "INPUT.count"}, output=["left"]),
            function("add", reads={"x": "LOCAL.left", "y": "INPUT.more"}),
        )
    )
    assert found["begin"]["Parameters"] == {"INPUT.$": "$"}
    assert found["draw"]["Parameters"] == {"n.$": "$.INPUT.count"}
    assert found["draw"]["ResultPath"] == "$.draw"
    assert found["add"]["Parameters"] == {"x.$": "$.draw.left", "y.$": "$.INPUT.more"}
    assert "ResultPath" not in found["add"], "the last answer is the workflow's"


def test_a_field_within_a_field_of_the_request_is_found():
    found = states(
        block(
            "sequence",
            function("a", reads={"x": "INPUT.user.name"}, output=["y.z"]),
            block(
                "switch",
                when("INPUT.user.age > 17", function("b", reads={"y": "LOCAL.y.z"})),
                name="which",
            ),
        )
    )
    assert found["a"]["Parameters"] == {"x.$": "$.INPUT.user.name"}
    assert found["which"]["Choices"][0]["Variable"] == "$.INPUT.user.age"
    assert found["b"]["Parameters"] == {"y.$": "$.a['y.z']"}, "an output is one name"


def test_what_a_branch_gave_is_found_after_it():
    found = states(
        block(
            "sequence",
            block(
                "parallel",
                function("a", reads={"x": "INPUT.x"}, output=["one"]),
                function("b", reads={"x": "INPUT.x"}, output=["two"]),
                name="both",
            ),
            function("c", reads={"p": "LOCAL.one", "q": "LOCAL.two"}),
        )
    )
    assert found["parallel"]["ResultPath"] == "$.parallel"
    assert found["c"]["Parameters"] == {"p.$": "$.parallel[0].a.one", "q.$": "$.parallel[1].b.two"}


def test_a_switch_takes_the_first_arm_that_holds_and_goes_on_after_it():
    found = states(
        block(
            "sequence",
            function("a", reads={"x": "INPUT.x"}, output=["size"]),
            block(
                "switch",
                when("LOCAL.size < INPUT.most", function("small", reads={"x": "LOCAL.size"})),
                when("INPUT.mode == 'big'", function("large", reads={"x": "LOCAL.size"})),
                name="which",
            ),
            function("b", reads={"x": "LOCAL.size"}),
        )
    )
    less, equal = found["which"]["Choices"]
    assert less == {
        "Or": [
            {"Variable": "$.a.size", f"{kind}LessThanPath": "$.INPUT.most"}
            for kind in ("Numeric", "String")
        ],
        "Next": "small",
    }
    assert equal == {"Variable": "$.INPUT.mode", "StringEquals": "big", "Next": "large"}
    assert found["which"]["Default"] == "b"
    assert found["small"]["Next"] == found["large"]["Next"] == "b"


def test_what_every_arm_of_a_switch_gives_is_known_after_it():
    found = states(
        block(
            "sequence",
            block(
                "switch",
                when("INPUT.x > 1", function("a", reads={"x": "INPUT.x"}, output=["y", "z"])),
                when("default", function("b", reads={"x": "INPUT.x"}, output=["y"])),
                name="which",
            ),
            function("c", reads={"y": "LOCAL.y"}),
        )
    )
    assert found["a"]["Next"] == "which_1"
    for name, arm in (("which_1", "a"), ("which_2", "b")):
        assert found[name] == {
            "Type": "Pass",
            "Parameters": {"y.$": f"$.{arm}.y"},
            "ResultPath": "$.which",
            "Next": "c",
        }
    assert found["c"]["Parameters"] == {"y.$": "$.which.y"}


def test_a_switch_at_the_end_answers_what_its_arm_does():
    arms = [when(c, function(n, output=["y"])) for c, n in (("INPUT.x > 1", "a"), ("default", "b"))]
    found = states(block("switch", *arms, name="which"))
    ends = [state for state in found.values() if state.get("End")]
    assert ends == [{"Type": "Pass", "InputPath": f"$.{n}", "End": True} for n in "ab"]


def test_a_flat_answer_may_be_of_one_function_or_another():
    first = flat("v", "b", "c", kind="switch") | {"source": "VIRTUAL"}
    first["next"]["conditions"] = ["INPUT.odd", "default"]
    either = [{"function": "b", "parameter": "x"}, {"function": "c", "parameter": "y"}]
    document = {
        "functions": [first, flat("b", gives=["x"]), flat("c", gives=["y"])],
        "global_output": {"result": {"type": "switch", "value": either}},
    }
    found = states(document)
    kept = [s for s in found.values() if s.get("ResultPath") == "$.result_of_either"]
    assert [s["Parameters"] for s in kept] == [{"result.$": "$.b.x"}, {"result.$": "$.c.y"}]
    assert found["answer"]["Parameters"] == {"result.$": "$.result_of_either.result"}


def test_a_foreach_runs_for_each_item_and_its_answers_are_a_list():
    found = states(
        block(
            "sequence",
            function("split", output=["parts"]),
            {
                "name": "all",
                "type": "foreach",
                "inputMappings": [
                    {"target": "part", "source": "LOCAL.parts[*]"},
                    {"target": "mode", "source": "INPUT.mode"},
                ],
                "task": function("count", output=["n"]),
                "outputMappings": [{"target": "counts", "source": "LOCAL[*].n"}],
            },
            function("sum", reads={"all": "LOCAL.counts"}),
        )
    )
    each = found["count"]
    assert (each["Type"], each["ItemsPath"]) == ("Map", "$.split.parts")
    assert each["ItemSelector"] == {"part.$": "$$.Map.Item.Value", "mode.$": "$.INPUT.mode"}
    assert found["sum"]["Parameters"] == {"all.$": "$.count[*].n"}


def test_output_mappings_of_the_whole_are_the_answer():
    found = states(
        block(
            "sequence",
            function("a", output=["x"]),
            function("b", reads={"x": "LOCAL.x"}),
            outputMappings=[{"target": "result", "source": "LOCAL.x"}],
        )
    )
    assert found["b"]["Next"] == "answer"
    assert found["answer"]["Parameters"] == {"result.$": "$.a.x"}


def test_the_flat_form_names_functions_by_next():
    document = {"functions": [flat("a", "b", "c"), flat("b", "d"), flat("c", "d"), flat("d")]}
    workflow = parse_workflow(document)
    assert workflow.by_name["d"].source == ("b", "c")
    assert workflow.stages == (("a",), ("b", "c"), ("d",))


def test_a_flat_foreach_runs_for_what_its_key_names():
    found = states(
        {
            "functions": [
                flat("split", "count", kind="foreach", gives=["parts", "mode"]),
                flat(
                    "count",
                    "sum",
                    input={"p": read("split.parts", "key"), "m": read("split.mode")},
                    gives=["n"],
                ),
                flat("sum", "END", input={"all": read("count.n")}),
            ],
            "global_output": None,
        }
    )
    assert found["count"]["ItemsPath"] == "$.split.parts"
    assert found["count"]["ItemSelector"] == {"p.$": "$$.Map.Item.Value", "m.$": "$.split.mode"}
    assert found["sum"]["Parameters"] == {"all.$": "$.count[*].n"}


def test_a_flat_output_with_a_value_is_that_value_wherever_it_is_read():
    first = flat("a", "b") | {"output": {"mode": read("INPUT.mode"), "x": {"type": "normal"}}}
    second = flat("b", "v", input={"m": read("a.mode"), "x": read("a.x")})
    second["output"] = {"mode": read("a.mode")}
    virtual = flat("v", "c", "END", kind="switch") | {"source": "VIRTUAL"}
    virtual["next"]["conditions"] = ["b.mode", "default"]
    functions = [first, second, virtual, flat("c", input={"m": read("b.mode")})]
    answer = {"result": {"type": "pass", "value": {"function": "b", "parameter": "mode"}}}
    found = states({"functions": functions, "global_output": answer})
    assert found["b"]["Parameters"] == {"m.$": "$.INPUT.mode", "x.$": "$.a.x"}
    assert found["v"]["Choices"][0]["Variable"] == "$.INPUT.mode"
    assert found["c"]["Parameters"] == {"m.$": "$.INPUT.mode"}
    assert found["answer"]["Parameters"] == {"result.$": "$.INPUT.mode"}


def test_a_flat_switch_may_end_the_workflow():
    virtual = flat("v", "b", "END", kind="switch") | {"source": "VIRTUAL"}
    virtual["next"]["conditions"] = ["a.odd", "default"]
    found = states(
        {
            "functions": [
                flat("a", "v", gives=["odd"]),
                virtual,
                flat("b", input={"x": read("a.odd")}),
            ]
        }
    )
    (rule,) = found["v"]["Choices"]
    assert rule == {"Variable": "$.a.odd", "BooleanEquals": True, "Next": "b"}
    assert found[found["v"]["Default"]] == {"Type": "Pass", "InputPath": "$.a", "End": True}


def test_two_arms_may_lead_to_one_function():
    first = flat("v", "b", "c", kind="switch") | {"source": "VIRTUAL"}
    first["next"]["conditions"] = ["a.odd", "default"]
    steps = [
        flat("a", "v", gives=["odd"]),
        first,
        flat("b", input={"x": read("a.odd")}),
        flat("c", "b", input={"x": read("a.odd")}),
    ]
    found = states({"functions": steps})
    assert found["c"]["Next"] == found["v"]["Choices"][0]["Next"] == "b"


@each_row(
    ("steps", "code", "path", "words"),
    [
        ([flat("a", "b")], "unknown-next", "functions[0]", "'b'"),
        ([flat("a"), flat("a")], "duplicate-state", "functions[1]", "two steps"),
        ([flat("a", "b"), flat("b", "a")], "cycle", None, "a -> b -> a"),
        ([flat("a", nxt=1)], "unknown-field", "functions[0].nxt", "did you mean next?"),
        ([{"name": "a"}], "missing-field", "functions[0].source", "source"),
        ([flat("a") | {"runtime": "3"}], "bad-field", "functions[0].runtime", "a number"),
        (
            [flat("a", "b", kind="loop"), flat("b")],
            "bad-field",
            "functions[0].next.type",
            "foreach",
        ),
        (
            [flat("a", next={"type": "pass", "conditions": ["a.x"]})],
            "bad-field",
            "functions[0].next.conditions",
            "the type is pass",
        ),
        (
            [flat("a", "b", kind="foreach"), flat("b", input={"x": read("a.x")})],
            "missing-field",
            "functions[1]",
            "type key",
        ),
        (
            [flat("a", "b"), flat("b", input={"x": read("a.x")})],
            "unknown-read",
            "functions[1].input.x.value",
            "output of 'a'",
        ),
        (
            [flat("a", "c"), flat("b", "c", gives=["x"]), flat("c", input={"x": read("d.x")})],
            "unknown-read",
            "functions[2].input.x.value",
            "is no step",
        ),
    ],
)
def test_the_flat_form_names_what_is_wrong(steps, code, path, words, refused):
    error = refused(parse_workflow, {"functions": steps})
    assert (error.code, error.path) == (code, path)
    assert words in error.message


@each_row(
    ("given", "code", "path"),
    [
        ({"x": {"type": "pass", "size": 8}}, None, None),
        ({"x": {"tpye": "pass"}}, "unknown-field", "global_input.x.tpye"),
        ({"x": {"size": "8"}}, "bad-field", "global_input.x.size"),
        ({"x": "pass"}, "bad-field", "global_input.x"),
        (["x"], "bad-field", "global_input"),
    ],
)
def test_the_inputs_of_the_workflow_are_checked(given, code, path, refused):
    document = {"global_input": given, "functions": [flat("a")]}
    if code is None:
        assert parse_workflow(document).by_name.keys() == {"a"}
        return
    error = refused(parse_workflow, document)
    assert (error.code, error.path) == (code, path)


def test_branches_that_need_each_others_functions_are_refused_where_data_is_named(refused):
    steps = [
        flat("a", "c", "d", gives=["x"]),
        flat("b", "d", gives=["y"]),
        flat("c", input={"x": read("a.x")}),
        flat("d", input={"y": read("b.y")}),
    ]
    error = refused(translate_flat, {"functions": steps})
    assert (error.code, error.path) == ("not-series-parallel", "functions[0]")
    assert set(error.functions) >= {"a", "b", "d"}


@each_row(
    ("document", "code", "path"),
    [
        (block("sequence"), "bad-field", "steps"),
        (block("sequence", {"name": "a", "type": "loop"}), "bad-field", "steps[0].type"),
        (block("sequence", function("a", retries=3)), "unknown-field", "steps[0].retries"),
        (
            block("sequence", function("a", reads={"x": "LOCAL.y"})),
            "unknown-read",
            "steps[0].inputMappings[0].source",
        ),
        (
            block("sequence", function("a", reads={"x": "y"})),
            "bad-field",
            "steps[0].inputMappings[0].source",
        ),
        (
            block("switch", when("a ? b", function("a"))),
            "bad-condition",
            "choices[0].condition",
        ),
        (block("switch", when("default", function("a"))), "bad-field", None),
        (
            {
                "name": "all",
                "type": "foreach",
                "inputMappings": [{"target": "x", "source": "INPUT.x[*]"}],
                "task": block("sequence", function("a"), function("b")),
            },
            "unsupported-field",
            "task.type",
        ),
    ],
)
def test_the_nested_form_names_what_is_wrong(document, code, path, refused):
    error = refused(translate_nested, document)
    assert (error.code, error.path) == (code, path)


def test_data_of_an_arm_is_not_always_there_after_the_switch(refused):
    arm = function("b", reads={"x": "INPUT.x"}, output=["y"])
    document = block(
        "sequence",
        block("switch", when("INPUT.x > 1", arm), name="which"),
        function("c", reads={"y": "LOCAL.y"}),
    )
    error = refused(translate_nested, document)
    assert (error.code, error.path) == ("unknown-read", "steps[1].inputMappings[0].source")


def test_an_answer_that_not_every_arm_gives_is_refused(refused):
    first = flat("v", "b", "c", kind="switch") | {"source": "VIRTUAL"}
    first["next"]["conditions"] = ["INPUT.odd", "default"]
    result = {"type": "switch", "value": [{"function": "b", "parameter": "x"}]}
    document = {
        "functions": [first, flat("b", gives=["x"]), flat("c")],
        "global_output": {"result": result},
    }
    assert refused(translate_flat, document).code == "unknown-read"
    result["value"].append({"function": "d", "parameter": "x"})
    error = refused(translate_flat, document)
    assert (error.code, error.path) == ("unknown-read", "global_output.result.value[1]")


def test_a_name_that_no_function_can_have_is_said_with_its_place(refused):
    error = refused(parse_workflow, {"functions": [flat("a") | {"source": "video__upload"}]})
    assert (error.code, error.path) == ("bad-name", "functions[0]")
    assert "functions.json" in error.message
