"""A state machine that cannot be run is drawn all the same, with its faults where they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.services.dashboard.outline import outline

TASK = {"Type": "Task", "Resource": "arn:aws:states:::sns:publish"}
MACHINE = {
    "StartAt": "Look up",
    "States": {
        "Nobody": {"Type": "Pass", "End": True},
        "Look up": TASK | {"Next": "v1.0?", "Catch": [{"Next": "Sorry"}, {"Next": "Sorry"}]},
        "v1.0?": {"Type": "Choice", "Choices": [{"Next": "Both"}], "Default": "Sorry"},
        "Both": {
            "Type": "Parallel",
            "Next": "Sorry",
            "Branches": [
                {"StartAt": "Left", "States": {"Left": TASK | {"Next": "Look up"}}},
                {"StartAt": "Right", "States": {"Right": TASK}},
            ],
        },
        "Sorry": {"Type": "Fail"},
    },
}
LEFT, RIGHT = (
    f"States.Both.Branches[{n}].States.{name}" for n, name in enumerate(("Left", "Right"))
)


def fault(path, code="unsupported-resource"):
    return {"code": code, "message": "no", "path": path}


def parts_of(found):
    nodes = {each["data"]["id"]: each for each in found if "position" in each}
    edges = {
        (each["data"]["source"], each["data"]["target"]): each["data"]["label"]
        for each in found
        if "position" not in each
    }
    return nodes, edges


def test_states_at_any_depth_are_there_with_what_follows_them():
    nodes, edges = parts_of(outline(MACHINE, []))
    top = [f"States.{name}" for name in MACHINE["States"]]
    assert set(nodes) == {*top, LEFT, RIGHT}
    assert edges == {
        ("States.Look up", "States.v1.0?"): "",
        ("States.Look up", "States.Sorry"): "on error",
        ("States.v1.0?", "States.Both"): "",
        ("States.v1.0?", "States.Sorry"): "else",
        ("States.Both", LEFT): "",
        ("States.Both", RIGHT): "",
        ("States.Both", "States.Sorry"): "",
    }
    columns = {path: node["position"]["x"] for path, node in nodes.items()}
    assert columns["States.Look up"] < columns["States.v1.0?"] < columns["States.Both"]
    assert columns["States.Both"] < columns[LEFT] == columns[RIGHT]
    places = [tuple(node["position"].values()) for node in nodes.values()]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize(
    ("path", "marked"),
    [
        (f"{LEFT}.Resource", LEFT),
        ("States.Both.Next", "States.Both"),
        ("States.v1.0?.Choices[0]", "States.v1.0?"),
        ("States.Both.Branches[1].StartAt", "States.Both"),
        ("QueryLanguage", None),
        (None, None),
    ],
)
def test_a_fault_is_shown_at_the_innermost_state_that_has_it(path, marked):
    nodes, _ = parts_of(outline(MACHINE, [fault(path)]))
    red = [name for name, node in nodes.items() if "unsupported-resource" in node["data"]["label"]]
    assert red == ([marked] if marked else [])


anything = st.recursive(
    st.none() | st.integers() | st.sampled_from(["A", "B", "States"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["A", "B", "StartAt", "States", "Branches", "Iterator", "Next", "Choices", "Catch"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=30,
)


@given(anything)
def test_what_is_written_may_be_anything(document):
    found = outline({"StartAt": "A", "States": document}, [fault("States.A.Next")])
    names = [each["data"]["id"] for each in found]
    assert len(set(names)) == len(names)
    nodes, edges = parts_of(found)
    assert all(end in nodes for edge in edges for end in edge)
