"""The front of the dashboard: each of its plans is the one that its planner and SLO lead to."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import pytest

from chiron.scheduler.planners import DEFAULT_PLANNER, PLANNERS
from chiron.services.dashboard.reading import front_of
from chiron.services.planning import ScheduleRequest, scheduled
from chiron.workflow.documents import validate
from chiron.workflow.folder import parse_workflow

#: What each of eight tasks beside each other computes for, in milliseconds.
COMPUTES_MS = (40, 35, 30, 20, 20, 10, 5, 5)


@pytest.fixture
def asked(platform):
    """A request for plans of which more CPUs make faster ones."""
    tasks = {f"t{number}": f"f{number}" for number in range(len(COMPUTES_MS))}
    edges = [[task, "join"] for task in tasks]
    workflow = {"tasks": tasks | {"join": "join"}, "edges": edges}
    functions = {
        name: {
            "latency_ms": float(ms),
            "periods": [{"kind": "cpu", "start_ms": 0.0, "duration_ms": float(ms)}],
        }
        for name, ms in zip([*tasks.values(), "join"], [*COMPUTES_MS, 1], strict=True)
    }
    return {
        "workflow": workflow,
        "profile": {"format": 1, "workflow": "workflow", "functions": functions},
        "platform": platform | {"cpus": 8},
        "slo": "1s",
    }


@pytest.fixture
def body(asked):
    return lambda **more: validate(ScheduleRequest, asked | more, "the plan")


@pytest.fixture
def drop_asked(drop, asked):
    """Drops what is asked for on a page, and waits until all is shown; returns the page."""

    def drop_on(page):
        files = [
            {"name": f"{part}.json", "mimeType": "", "buffer": json.dumps(asked[part]).encode()}
            for part in ("workflow", "profile", "platform")
        ]
        drop(page, files)
        page.locator("#front-table tbody tr").first.wait_for()
        page.wait_for_selector("#verdict")
        return page

    return drop_on


def test_each_point_is_the_plan_of_its_planner_and_slo(body):
    points = front_of(body())

    assert {point["planner"] for point in points} == set(PLANNERS)
    for point in points:
        slo = f"{math.ceil(10 * point['latency_ms']) / 10}ms"
        plan = scheduled(body(slo=slo, planner=point["planner"]))
        assert plan["cpus"] == point["cpus"]
        assert plan["predicted"]["within"]["ms"] == pytest.approx(point["latency_ms"], rel=1e-6)
        assert plan["meets_slo"]


def test_the_front_falls_in_latency_as_it_rises_in_cpus(body):
    front = [point for point in front_of(body()) if point["planner"] == DEFAULT_PLANNER]

    assert len(front) > 3
    for cheaper, faster in pairwise(front):
        assert cheaper["cpus"] < faster["cpus"]
        assert cheaper["latency_ms"] > faster["latency_ms"]


def test_a_planner_that_has_no_plan_is_left_out(body):
    buckets = {
        "entry": "in",
        "buckets": {
            "in": {"trigger": "immediate", "function": "f0"},
            "out": {"trigger": "immediate", "function": "f1"},
        },
        "functions": {"f0": {"gives": "out"}},
    }
    parse_workflow(buckets)

    planners = {point["planner"] for point in front_of(body(workflow=buckets))}

    assert DEFAULT_PLANNER in planners
    assert "one-to-one" not in planners


@pytest.mark.slow
@pytest.mark.browser
def test_a_plan_is_chosen_by_keyboard_and_by_mouse(open_page, drop_asked, sound):
    page = drop_asked(open_page())
    rows = page.locator("#front-table tbody tr")
    page.get_by_label("Planner").select_option("sand")
    sound(page)

    _, cpus, latency, *_ = cells(rows.nth(2))
    button = rows.nth(2).get_by_role("button")
    button.focus()
    page.keyboard.press("Enter")
    page.locator("#verdict").get_by_text(f"ms: p50 {latency}, p95 {latency} (").wait_for()
    assert f"{cpus} CPUs" in page.inner_text("#verdict")
    assert page.get_by_label("Planner").input_value() == DEFAULT_PLANNER
    assert button.evaluate("button => button === document.activeElement")

    _, cpus, latency, *_ = cells(rows.nth(0))
    page.locator("#front-points button").nth(0).click()
    page.locator("#verdict").get_by_text(f"ms: p50 {latency}, p95 {latency} (").wait_for()


@pytest.mark.slow
@pytest.mark.browser
def test_two_plans_are_compared(open_page, drop_asked):
    page = drop_asked(open_page())
    rows = page.locator("#front-table tbody tr")
    cheap, fast = (rows.nth(number) for number in (0, 2))
    figures = [cells(row)[:4] for row in (cheap, fast)]
    page.get_by_label("exactly").fill("1")
    page.keyboard.press("Tab")
    page.get_by_text("Does not meet the SLO").wait_for()

    cheap.get_by_role("button").click()
    page.locator("#verdict").get_by_text(f"p95 {figures[0][2]} (").wait_for()
    page.get_by_role("button", name="Compare others with this plan").click()
    page.get_by_text("This is the plan to compare with").wait_for()
    fast.get_by_role("button").click()

    differences = page.locator("#differences")
    differences.locator("li").first.wait_for()
    told = {row[0]: row[1:] for row in map(cells, differences.locator("tbody tr").all())}
    assert told["CPUs"] == [each[1] for each in figures]
    assert told["memory"] == [each[3] for each in figures]
    assert {"SLO", "predicted"} <= told.keys()
    assert "process 2 of" in differences.locator("ul").inner_text()

    page.get_by_role("button", name="Compare no more").click()
    differences.locator("table").wait_for(state="detached")


def shown(latency):
    """A prediction of requests that are all alike."""
    return f"p50 {latency}, p95 {latency}"


def cells(row):
    return row.locator("td").all_inner_texts()
