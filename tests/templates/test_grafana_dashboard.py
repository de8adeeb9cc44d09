"""The dashboard for Grafana asks for what wraps tell, in the form that Grafana reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from prometheus_client.parser import text_string_to_metric_families

from chiron.workflow.buckets import parse_buckets

FILE = Path(__file__).resolve().parents[2] / "installation" / "grafana-dashboard.json"
DASHBOARD = json.loads(FILE.read_text())
GRAPHS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
VARIABLES = {each["name"]: each for each in DASHBOARD["templating"]["list"]}
#: What Prometheus says of each target.
OF_TARGETS = {"job", "instance"}
ECHO = "def handle(req):\n    return req\n"
#: Events that are run one by one.
EVENTS = {
    "entry": "events",
    "buckets": {"events": {"trigger": "immediate", "function": "first"}},
    "functions": {"first": {}},
}


def parsed(expression: str) -> promql_parser.Expr:
    """An expression as Grafana sends it when all workflows and wraps are chosen."""
    for name, value in (("__rate_interval", "1m"), ("workflow", ".+"), ("wrap", ".+")):
        expression = expression.replace(f"${name}", value)
    assert "$" not in expression.replace('"$1.0"', ""), expression
    return promql_parser.parse(expression)


def parts(expression: promql_parser.Expr) -> list[promql_parser.Expr]:
    found: list[promql_parser.Expr] = []
    promql_parser.walk(expression, lambda each: found.append(each))
    return found


def queries() -> Iterator[tuple[str, promql_parser.Expr, str]]:
    """What each line of each graph asks for: where it is, the expression, and its legend."""
    for panel in GRAPHS:
        for target in panel["targets"]:
            place = f"{panel['title']}, {target['refId']}"
            yield place, parsed(target["expr"]), target["legendFormat"]


def grouped_by(expression: promql_parser.Expr) -> set[str]:
    """The labels by which it aggregates or matches."""
    found: set[str] = set()
    for each in parts(expression):
        modifier = getattr(each, "modifier", None)
        if isinstance(each, promql_parser.AggregateExpr) and modifier is not None:
            found |= set(modifier.labels)
        elif isinstance(each, promql_parser.BinaryExpr) and modifier is not None:
            found |= set(modifier.matching.labels if modifier.matching else ())
            found |= set(modifier.group_labels or ())
    return found


@pytest.fixture(scope="module")
def told(shared_image: Any, shared_start: Any) -> dict[str, set[str]]:
    """The metrics of a wrap with an SLO and of one with buckets, and the labels of each."""
    workflow = parse_buckets(EVENTS, "events")
    entry = {"output": None, "states": {"first": 0}, "buckets": workflow.buckets}
    servers = [
        shared_start(shared_image({"f": ECHO}, entry={"output": 0}), WRAP_SLO_MS="100"),
        shared_start(shared_image({"first": ECHO}, name="events-wrap1", entry=entry)),
    ]
    found: dict[str, set[str]] = {}
    for server in servers:
        assert server.request(body="1").status in (200, 202)
        for family in text_string_to_metric_families(server.request("GET", "/metrics").text):
            for sample in family.samples:
                found.setdefault(sample.name, set()).update(sample.labels)
    return found


def test_each_metric_and_label_that_it_asks_for_is_one_that_wraps_tell(told):
    for place, expression, _ in queries():
        selected: set[str] = set()
        for each in parts(expression):
            if isinstance(each, promql_parser.VectorSelector):
                assert each.name in told, f"{place}: {each.name}"
                labels = {matcher.name for matcher in each.matchers.matchers}
                assert labels <= told[each.name] | OF_TARGETS, f"{place}: {each.name}"
                selected |= told[each.name]
        assert selected, place
        assert grouped_by(expression) <= selected | OF_TARGETS, place


def test_each_metric_of_a_wrap_is_in_it(told: dict[str, set[str]]) -> None:
    asked = {
        each.name
        for _, expression, _ in queries()
        for each in parts(expression)
        if isinstance(each, promql_parser.VectorSelector)
    }
    without = {re.sub("_(bucket|sum|count)$", "", name) for name in told}
    without -= {re.sub("_(bucket|count)$", "", name) for name in asked}
    assert without == {"process_virtual_memory_bytes"}


def test_its_variables_are_labels_that_wraps_tell(told: dict[str, set[str]]) -> None:
    assert set(VARIABLES) == {"datasource", "workflow", "wrap"}
    for name in ("workflow", "wrap"):
        query = VARIABLES[name]["query"]["query"]
        selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", query).groups()
        asked = parsed(selector)
        assert label == name and label in told[asked.name]
        assert {matcher.name for matcher in asked.matchers.matchers} <= told[asked.name]


def test_its_legends_name_labels_that_its_lines_have() -> None:
    for place, expression, legend in queries():
        assert set(re.findall(r"{{(\w+)}}", legend)) <= grouped_by(expression), place


def test_no_sum_is_over_workflows_that_were_not_chosen() -> None:
    for place, expression, _ in queries():
        infos = [
            each
            for each in parts(expression)
            if getattr(each, "name", None) == "chiron_replica_info"
        ]
        assert infos, place
        for info in infos:
            assert "workflow" in {matcher.name for matcher in info.matchers.matchers}, place


def test_grafanas_own_types_take_all_that_it_says() -> None:
    plugins.register_default_plugins()
    taken = JSONEncoder().encode(Dashboard.from_json(DASHBOARD))
    assert list(lost(DASHBOARD, json.loads(taken))) == []


def lost(said: Any, taken: Any, place: str = "") -> Iterator[str]:
    """Where something is that was said and is not among what was taken."""
    if isinstance(said, dict) and isinstance(taken, dict):
        for key, value in said.items():
            yield from lost(value, taken.get(key), f"{place}.{key}")
    elif isinstance(said, list) and isinstance(taken, list) and len(said) == len(taken):
        for index, pair in enumerate(zip(said, taken, strict=True)):
            yield from lost(*pair, f"{place}[{index}]")
    elif said != taken:
        yield place


def test_it_can_be_imported_anywhere() -> None:
    sources = {json.dumps(panel["datasource"], sort_keys=True) for panel in GRAPHS}
    sources |= {
        json.dumps(target["datasource"], sort_keys=True)
        for panel in GRAPHS
        for target in panel["targets"]
    }
    assert sources == {json.dumps({"type": "prometheus", "uid": "${datasource}"}, sort_keys=True)}
    assert "id" not in DASHBOARD  # it is that of one Grafana's database
    assert all(panel["description"] for panel in GRAPHS)
