"""Pictures of workflows: what they show, in layers, with nothing on top of another."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree

import pytest

from chiron.workflow.asl import parse_states
from chiron.workflow.chart import BEGIN, END, chart_of, said
from chiron.workflow.chart_layout import Layout, layout
from chiron.workflow.chart_mermaid import mermaid
from chiron.workflow.chart_svg import svg
from chiron.workflow.dag import parse_dag
from tests.rows import each_row

TASK = {"Type": "Task", "Resource": "f"}
MACHINE = {
    "StartAt": "Check",
    "States": {
        "Check": TASK
        | {
            "Retry": [{"ErrorEquals": ["States.Timeout"]}],
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Refuse"}],
            "Next": "Which",
        },
        "Which": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.price", "NumericGreaterThan": 10, "Next": "Later"}],
            "Default": "All",
        },
        "Later": {"Type": "Wait", "Seconds": 5, "Next": "Check"},
        "All": {
            "Type": "Map",
            "ItemsPath": "$.items",
            "ItemProcessor": {"StartAt": "Pack", "States": {"Pack": TASK | {"End": True}}},
            "Next": "Both",
        },
        "Both": {
            "Type": "Parallel",
            "Branches": [
                {"StartAt": "Bill", "States": {"Bill": TASK | {"End": True}}},
                {"StartAt": "Ship", "States": {"Ship": TASK | {"End": True}}},
            ],
            "End": True,
        },
        "Refuse": {"Type": "Fail", "Error": "Odd"},
    },
}


@pytest.fixture
def chart():
    """What is drawn of a machine of all kinds."""
    return chart_of(parse_states(MACHINE, "demo"))


def test_a_dag_is_its_tasks_between_request_and_answer():
    document = {"tasks": {"a": "f", "b": "b"}, "edges": [["a", "b"]]}
    found = chart_of(parse_dag(document, "demo"))
    assert [(edge.start, edge.end) for edge in found.edges] == [
        (BEGIN, "a"),
        ("a", "b"),
        ("b", END),
    ]
    assert found.nodes["a"].lines == ("a", "f")
    assert found.nodes["b"].lines == ("b",), "its function is called the same"


def test_states_are_drawn_by_what_they_do(chart):
    shapes = {key: node.shape for key, node in chart.nodes.items() if key in MACHINE["States"]}
    assert shapes == {
        "Check": "task",
        "Which": "choice",
        "Later": "state",
        "All": "box",
        "Both": "box",
        "Refuse": "state",
    }
    assert chart.nodes["All"].lines == ("All", "for each of $.items")
    assert [list(inner.nodes) for inner in chart.nodes["Both"].inner] == [["Bill"], ["Ship"]]
    assert chart.nodes["Check"].again == "retry Timeout"
    assert {e.start for e in chart.edges if e.end == END} == {"Both"}, "what fails answers nothing"


def test_edges_are_labelled_and_dashed_after_failures(chart):
    labels = {node.lines[0]: key for key, node in chart.nodes.items() if node.shape == "text"}
    assert set(labels) == {"price > 10", "otherwise", "catch ALL"}
    dashed = [(edge.start, edge.end) for edge in chart.edges if edge.dashed]
    assert dashed == [("Check", labels["catch ALL"]), (labels["catch ALL"], "Refuse")]


@each_row(
    ("rule", "text"),
    [
        ({"Variable": "$.a", "NumericLessThanEquals": 3, "Next": "x"}, "a <= 3"),
        ({"Variable": "$.a", "StringEqualsPath": "$.b", "Next": "x"}, "a = b"),
        ({"Variable": "$.a", "StringMatches": "x*", "Next": "x"}, 'a like "x*"'),
        ({"Variable": "$.a", "IsNull": False, "Next": "x"}, "a is not null"),
        ({"Not": {"Variable": "$.a", "BooleanEquals": True}, "Next": "x"}, "not a = true"),
        ({"Assign": {"b": 1}, "Variable": "$.a", "IsNull": True, "Next": "x"}, "a is null"),
        ({"Condition": "{% $a > 1 %}", "Next": "x"}, "$a > 1"),
        ({"Condition": True, "Next": "x"}, "true"),
        (
            {
                "And": [
                    {
                        "Or": [
                            {"Variable": "$.a", "IsNull": True},
                            {"Variable": "$.b", "IsNull": True},
                        ]
                    },
                    {"Variable": "$.c", "IsNull": True},
                ]
            },
            "(a is null or b is null) and c is null",
        ),
    ],
)
def test_rules_are_said_in_short(rule, text):
    assert said(rule) == text


def test_nothing_is_drawn_over_another_and_all_is_inside(chart):
    def check(of: Layout) -> None:
        nodes = list(of.nodes.values())
        for each in nodes:
            assert each.x - each.wide / 2 >= -0.01 and each.x + each.wide / 2 <= of.wide + 0.01
            assert each.y >= 0 and each.y + each.high <= of.high + 0.01
            for left, down, inside in each.inner:
                assert left >= 0 and left + inside.wide <= each.wide
                assert down > 0 and down + inside.high <= each.high
                check(inside)
        for one, other in combinations(nodes, 2):
            apart = abs(one.x - other.x) - (one.wide + other.wide) / 2
            assert apart >= 0 or one.y + one.high <= other.y or other.y + other.high <= one.y

    check(layout(chart))


def test_edges_lead_down_but_for_those_of_a_loop(chart):
    routes = layout(chart).routes
    assert [r.edge.start for r in routes if r.lane is not None] == ["Later"]
    for route in (r for r in routes if r.lane is None):
        heights = [y for _, y in route.points]
        assert heights == sorted(heights)


def test_the_file_needs_no_other_and_says_all_names(chart):
    chart.nodes["Refuse"].lines = ("<Refuse> & \x1b",)
    text = svg(chart, "a <title> & more")
    root = ElementTree.fromstring(text)  # noqa: S314
    assert root.findtext("{*}title") == "a <title> & more"
    written = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"Check", "Which", "All", "Pack", "Bill", "<Refuse> &  ", "otherwise"} <= written
    assert "prefers-color-scheme: dark" in text
    links = text.replace("http://www.w3.org/2000/svg", "")
    assert "http" not in links and "href" not in links and "url(#" in links


def test_a_long_name_is_cut_and_whole_where_one_points_at_it():
    name = "long " * 15 + "name"
    text = svg(chart_of(parse_dag({"tasks": {name: "f"}}, "demo")), "demo")
    assert f"<title>{name}: f</title>" in text
    assert text.count(name) == 1


@each_row("tasks", [1, 300])
def test_any_number_of_tasks_is_drawn(tasks):
    edges = [[f"t{n}", f"t{n + 7}"] for n in range(tasks - 7)]
    document = {"tasks": {f"t{n}": "f" for n in range(tasks)}, "edges": edges}
    text = svg(chart_of(parse_dag(document, "demo")), "demo")
    assert text.count("<rect") == tasks


def test_a_state_diagram_has_all_states_and_transitions(chart):
    assert mermaid(chart, "demo").splitlines() == [
        "stateDiagram-v2",
        "accTitle: demo",
        'state "Check#58; f (retry Timeout)" as s1',
        'state "Which" as s2',
        'state "Later#58; wait 5 s" as s3',
        'state "All#58; for each of #36;.items" as s4 {',
        'state "Pack#58; f" as s5',
        "}",
        'state "Both" as s6 {',
        'state "Bill#58; f" as s7',
        "--",
        'state "Ship#58; f" as s8',
        "}",
        'state "Refuse#58; fail Odd" as s9',
        "s1 --> s2",
        "s1 --> s9 : catch ALL",
        "s2 --> s3 : price #62; 10",
        "s2 --> s4 : otherwise",
        "s3 --> s1",
        "s4 --> s6",
        "[*] --> s1",
        "s6 --> [*]",
    ]


def test_no_name_ends_the_text_of_a_state_diagram():
    name = 'a "b" {c}; %% --> größe'
    text = mermaid(chart_of(parse_dag({"tasks": {name: "f"}}, "demo")), "demo")
    named = "a #34;b#34; #123;c#125;#59; #37;#37; --#62; größe#58; f"
    assert text.splitlines()[2:] == [f'state "{named}" as s1', "[*] --> s1", "s1 --> [*]"]
