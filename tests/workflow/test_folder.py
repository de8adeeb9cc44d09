"""workflow.json of either form, whatever it holds, becomes a workflow or a one-line error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chiron.workflow.documents import parse_json
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import (
    WorkflowFolder,
    check_links,
    default_name,
    parse_workflow,
    stack_file_in,
)
from chiron.workflow.model import Workflow

TASK = {"Type": "Task", "Resource": "f", "End": True}
STATES = {"StartAt": "A", "States": {"A": TASK}}


def test_states_make_a_state_machine_and_tasks_make_a_dag():
    assert parse_workflow(STATES, "demo") == parse_workflow({"tasks": {"A": "f"}}, "demo")


@pytest.mark.parametrize("document", [None, 1, "States", [], ["States"], {}, {"edges": []}])
def test_what_is_neither_is_told_what_there_is(refused, document):
    error = refused(parse_workflow, document)
    assert error.code == "bad-document"
    assert "StartAt" in error.message and "tasks" in error.message


words = st.sampled_from(
    [
        "A",
        "B",
        "P",
        "f",
        "g",
        "",
        "\0",
        "\ud800",
        "a\nb",
        "x" * 70_000,
        "Ä",
        "Task",
        "Pass",
        "Parallel",
        "Succeed",
        "Fail",
        "Choice",
        "Map",
        "$.a[0]",
        "$$",
        "States.UUID()",
    ]
)
keys = words | st.sampled_from(
    [
        "StartAt",
        "States",
        "Type",
        "Resource",
        "Next",
        "End",
        "Branches",
        "Name",
        "Comment",
        "tasks",
        "edges",
        "name",
        "Error",
        "Cause",
        "Retry",
        "Catch",
        "ErrorEquals",
        "Choices",
        "Variable",
        "StringEquals",
        "And",
        "a.$",
    ]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | words
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(keys | st.text(), inner, max_size=5)
    ),
    max_leaves=25,
)
handlers = st.fixed_dictionaries(
    {"ErrorEquals": st.lists(st.sampled_from(["E", "States.ALL"]) | anything, max_size=2)},
    optional={"Next": st.sampled_from(["A", "B"]) | anything, "MaxAttempts": anything},
)
rules = st.fixed_dictionaries(
    {"Variable": st.just("$.a") | anything, "Next": st.sampled_from(["A", "B"]) | anything},
    optional={"StringEquals": st.just("x") | anything, "Not": anything, "And": anything},
)
state = st.fixed_dictionaries(
    {
        "Type": st.sampled_from(
            ["Task", "Task", "Pass", "Succeed", "Fail", "Parallel", "Map", "Choice", "Wait"]
        )
    },
    optional={
        "Resource": st.sampled_from(["f", "g-1", "F", ""]) | anything,
        "Next": st.sampled_from(["A", "B", "P", "a b", "nowhere"]) | anything,
        "End": st.just(True) | anything,
        "Branches": st.lists(st.deferred(lambda: nearly_valid), max_size=3) | anything,
        "Comment": anything,
        "Retry": st.lists(handlers, max_size=2) | anything,
        "Catch": st.lists(handlers, max_size=2) | anything,
        "Choices": st.lists(rules, max_size=2) | anything,
        "Iterator": st.deferred(lambda: nearly_valid) | anything,
        "Parameters": anything,
        "ResultPath": words,
    },
)
nearly_valid = st.fixed_dictionaries(
    {
        "StartAt": st.sampled_from(["A", "B", "P"]) | anything,
        "States": st.dictionaries(
            st.sampled_from(["A", "B", "P", "a b"]) | words, state | anything, max_size=4
        ),
    },
    optional={"Name": anything, "Comment": anything, "Version": anything},
)
plain_dags = st.fixed_dictionaries(
    {
        "tasks": st.dictionaries(
            st.sampled_from(["a", "b", "c"]) | words,
            st.sampled_from(["f", "g"]) | scalars,
            max_size=4,
        )
    },
    optional={
        "edges": st.lists(
            st.lists(st.sampled_from(["a", "b", "c"]), min_size=2, max_size=2) | anything,
            max_size=5,
        ),
        "name": anything,
    },
)


@settings(max_examples=100)
@given(anything | nearly_valid | plain_dags)
def test_any_json_value_gives_a_workflow_or_a_one_line_error(document: Any):
    try:
        workflow = parse_workflow(document)
    except ChironError as error:
        assert str(error).isprintable()
        assert len(str(error)) < 5000
        assert json.loads(json.dumps(error.as_dict()))["code"] == error.code
    else:
        assert isinstance(workflow, Workflow)
        assert sorted(task for stage in workflow.stages for task in stage) == sorted(
            task.name for task in workflow.tasks
        )


def test_nesting_beyond_bounds_is_refused_not_a_crash(refused):
    for depth in (100, 100_000):
        text = '{"StartAt": "A", "States": {"A": ' + "[" * depth + "]" * depth + "}}"
        error = refused(lambda text=text: parse_workflow(parse_json(text, "workflow")))
        assert error.code in ("bad-json", "bad-field")


def test_parallels_nested_beyond_bounds_are_refused_not_a_crash(refused):
    machine: dict[str, Any] = STATES
    for _ in range(5000):
        state = {"Type": "Parallel", "Branches": [machine], "End": True}
        machine = {"StartAt": "P", "States": {"P": state}}
    assert refused(parse_workflow, machine).code == "bad-json"


chains = st.lists(
    st.one_of(
        st.just("pass"),
        st.just("task"),
        st.lists(st.integers(min_value=1, max_value=3), min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=6,
)


def built(chain: list[Any]) -> tuple[dict[str, Any], list[tuple[str, ...]]]:
    """A machine and the stages it should have: a list is a Parallel of branches so long."""
    states: dict[str, Any] = {}
    stages: list[tuple[str, ...]] = []
    for number, step in enumerate(chain):
        last = number + 1 == len(chain)
        following = {"End": True} if last else {"Next": f"s{number + 1}"}
        name = f"s{number}"
        if step == "pass":
            states[name] = {"Type": "Pass", **following}
        elif step == "task":
            states[name] = {"Type": "Task", "Resource": "f", **following}
            stages.append((name,))
        else:
            branches = [[f"t{number}.{b}.{i}" for i in range(n)] for b, n in enumerate(step)]
            states[name] = {
                "Type": "Parallel",
                "Branches": [
                    {
                        "StartAt": names[0],
                        "States": {
                            t: {"Type": "Task", "Resource": "f"}
                            | ({"Next": after} if after else {"End": True})
                            for t, after in zip(names, [*names[1:], None], strict=True)
                        },
                    }
                    for names in branches
                ],
                **following,
            }
            stages += [
                tuple(names[i] for names in branches if i < len(names)) for i in range(max(step))
            ]
    return {"StartAt": "s0", "States": states}, stages


@given(chains.filter(lambda chain: set(map(str, chain)) != {"pass"}))
def test_a_valid_machine_has_the_stages_that_its_branches_spell(chain: list[Any]):
    machine, stages = built(chain)
    assert list(parse_workflow(machine).stages) == stages


def test_a_folder_is_opened_by_its_workflow(tmp_path):
    folder = tmp_path / "Finra"
    folder.mkdir()
    (folder / "workflow.json").write_text(json.dumps(STATES))
    opened = WorkflowFolder.open(folder)
    assert opened.workflow.name == "finra"
    assert opened.stack_file == folder / "stack.yaml"
    assert opened.payloads()[0].content == b"{}"
    (folder / "payload.json").write_bytes(b"\xff 1\n")
    assert opened.payloads()[0].content == b"\xff 1\n"


def test_a_folder_that_is_missing_or_empty_is_named(refused, tmp_path):
    for folder in (tmp_path / "nowhere", tmp_path):
        error = refused(WorkflowFolder.open, folder)
        assert error.code == "missing-file"
        assert str(folder) in error.message


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("orders", "orders"),
        ("Order_Processing (v2)", "order-processing-v2"),
        ("my.flow ünï", "my-flow-uni"),
        ("-a", "a"),
        ("1st", "workflow-1st"),
        ("a" * 62 + "_b", "a" * 62),
        ("注文", "workflow"),
    ],
)
def test_a_workflow_without_a_name_has_that_of_its_folder_as_openfaas_writes_it(
    tmp_path, folder, name
):
    (tmp_path / folder).mkdir()
    assert default_name(tmp_path / folder) == name


ARNS = {
    "arn:aws:lambda:eu-west-1:123456789012:function:ThumbNailer": "thumbnailer",
    "arn:aws:lambda:eu-west-1:123456789012:function:wordCount_v2:$LATEST": "word-count-v2",
    "${Merge_Function.Arn}": "merge-function",
}
STACK = "functions:\n  thumbnailer: {}\n  other: {}\n"


@pytest.fixture
def foreign(tmp_path):
    """A workflow folder whose functions have the names of another platform."""
    tasks = {f"t{number}": arn for number, arn in enumerate(ARNS)}
    (tmp_path / "workflow.json").write_text(json.dumps({"tasks": tasks}))
    (tmp_path / "stack.yaml").write_text(STACK)
    return tmp_path


def test_names_of_other_platforms_are_refused_with_a_map_that_mends_all_of_them(foreign, refused):
    error = refused(WorkflowFolder.open, foreign)
    assert (error.code, error.path, error.functions) == ("bad-name", "tasks.t0", tuple(ARNS))
    proposal = error.message[error.message.index("{") :]
    assert json.loads(proposal) == ARNS

    (foreign / "functions.json").write_text(proposal)
    assert WorkflowFolder.open(foreign).workflow.functions == tuple(ARNS.values())


@pytest.mark.parametrize("content", ["[]", '{"a": 1}', '{"a": "B"}', "{"])
def test_a_map_of_names_that_is_wrong_is_one_line(foreign, refused, content):
    (foreign / "functions.json").write_text(content)
    assert "functions.json" in str(refused(WorkflowFolder.open, foreign))


def test_a_task_of_the_plain_form_may_have_a_long_name():
    assert parse_workflow({"tasks": {"x" * 500: "f"}}).tasks[0].name == "x" * 500


@pytest.fixture
def code(tmp_path):
    """The handler folder f of a workflow folder, beside which something private lies."""
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key").write_text("secret")
    code = tmp_path / "flow" / "functions" / "f"
    code.mkdir(parents=True)
    (code / "handler.py").touch()
    return code


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("key", "../../../private/key"),
        ("folder", "../../../private"),
        ("absolute", "/etc/passwd"),
        ("by-another", "../../shared/out"),
        ("folder-with-one", "../../shared"),
        ("nowhere", "absent"),
        ("itself", "."),
        ("above", ".."),
        ("loop", "loop"),
    ],
)
def test_a_link_out_of_the_folder_or_to_nowhere_is_named(refused, code, link, target):
    folder = code.parents[1]
    (folder / "shared").mkdir()
    (folder / "shared" / "out").symlink_to("../../private/key")
    (code / link).symlink_to(target)

    error = refused(check_links, code, folder, "f")

    assert (error.code, error.functions) == ("bad-link", ("f",))
    assert str(code / link) in error.message


def test_a_handler_folder_that_is_a_link_out_is_refused(refused, code):
    folder = code.parents[1]
    (folder / "functions" / "g").symlink_to("../../private")
    (folder / "more").symlink_to("../private")

    for place in ("functions/g", "more", "./functions/../more", "more/key"):
        assert refused(check_links, folder / place, folder).code == "bad-link"


def test_links_that_multiply_are_refused(refused, code):
    folder = code.parents[1]
    for level in range(20):
        (folder / f"{level}").mkdir()
        for name in "ab":
            (folder / f"{level}" / name).symlink_to(f"../{level + 1}")
    (folder / "20").mkdir()
    (code / "first").symlink_to("../../0")

    assert refused(check_links, code, folder).code == "bad-link"


def test_links_within_the_workflow_folder_are_what_they_point_to(code):
    folder = code.parents[1]
    (folder / "shared").mkdir()
    (folder / "shared" / "util.py").touch()
    (code / "util.py").symlink_to("../../shared/util.py")
    (code / "shared").symlink_to("../../shared")
    (code / "again").symlink_to(folder / "shared")
    (folder.parent / "linked").symlink_to("flow")

    check_links(code, folder)
    check_links(folder.parent / "linked" / "functions" / "f", folder.parent / "linked")


def test_a_handler_folder_that_the_stack_names_elsewhere_may_link_within_itself(refused, code):
    folder = code.parents[2] / "other"
    folder.mkdir()
    (code / "alias.py").symlink_to("handler.py")
    check_links(folder / "../flow/functions/f", folder)

    (code / "out").symlink_to("../../../private/key")
    assert refused(check_links, folder / "../flow/functions/f", folder).code == "bad-link"


def test_a_payload_that_is_a_link_out_is_not_sent(refused, code):
    folder = code.parents[1]
    (folder / "workflow.json").write_text(json.dumps(STATES))
    (folder / "payload.json").symlink_to("../private/key")

    assert refused(WorkflowFolder.open(folder).payloads).code == "bad-link"


def test_a_name_that_no_task_calls_is_warned_of(code):
    folder = code.parents[1]
    (folder / "workflow.json").write_text(json.dumps({"tasks": {"A": "f", "B": "Geh"}}))
    (folder / "functions.json").write_text('{"Geh": "f", "Gehe": "f"}')
    (folder / "payload.json").write_text("{}")

    (warning,) = WorkflowFolder.open(folder).warnings()
    assert f"{folder / 'functions.json'} names Gehe, which no task calls" in warning


def test_a_task_that_chooses_its_function_may_call_all_names(code):
    folder, call = code.parents[1], {"FunctionName.$": "$.which"}
    invoke = TASK | {"Resource": "arn:aws:states:::lambda:invoke", "Parameters": call}
    states = {"StartAt": "A", "States": {"A": invoke}}
    (folder / "workflow.json").write_text(json.dumps(states))
    (folder / "functions.json").write_text('{"Geh": "f", "Gehe": "g"}')
    (folder / "payload.json").write_text("{}")

    assert list(WorkflowFolder.open(folder).warnings()) == []


def test_stack_yml_is_read_where_there_is_no_stack_yaml(tmp_path):
    assert stack_file_in(tmp_path).name == "stack.yaml"
    for name in ("stack.yml", "stack.yaml"):  # as faas-cli
        (tmp_path / name).write_text("functions: {}")
        assert stack_file_in(tmp_path).name == name
