"""The page of a workflow, in a real browser: its address, its graph, and what it lacks."""

from __future__ import annotations

import json
import shutil
from base64 import b64decode
from pathlib import Path

import pytest

from chiron.deployment.journal import Journal, WatchEvent
from chiron.deployment.live import Live
from chiron.deployment.postmortem import FailedExecution
from chiron.profiler.holding import profiled_source
from chiron.services.dashboard.address import page_of, workflow_at
from chiron.services.dashboard.reading import find_named, look_at_named
from chiron.services.jobs import JobSummary
from chiron.services.problems import Problem
from chiron.workflow.chart import chart_of
from chiron.workflow.chart_svg import svg
from chiron.workflow.folder import WorkflowFolder

ORDERS = Path(__file__).parents[2] / "benchmarks" / "orders"
browser = pytest.mark.browser
FAILED = FailedExecution(
    at="2026-01-01T00:00:00Z", function="first", execution="1a2b", code="raised", message="no"
)


@pytest.fixture
def deployed(monkeypatch, config, live_workflow):
    """Two workflows are deployed, one of which misses its SLO."""
    workflows = (live_workflow("demo", 200.0, 0.99), live_workflow("orders", 150.0, 0.5, FAILED))
    live = Live(gateway=config.gateway_url, at="2026-01-01T00:00:00+00:00", workflows=workflows)
    monkeypatch.setattr("chiron.services.dashboard.feed.LiveFeed.newest", lambda _: live)


@pytest.fixture
def orders(root):
    """A state machine that decides, below the server's root."""
    return Path(shutil.copytree(ORDERS, root / "orders"))


@pytest.mark.parametrize("name", ["demo", "a-b.c", "a/b %"])
def test_an_address_names_its_workflow(name):
    assert workflow_at(page_of(name)) == name


@pytest.mark.parametrize("path", [None, "/", "/workflow/", "/docs", "/workflows/demo"])
def test_other_addresses_name_none(path):
    assert workflow_at(path) is None


def test_a_folder_is_found_by_the_name_of_its_workflow(root, orders):
    (root / "broken").mkdir()
    (root / "broken" / "workflow.json").write_text("{")
    orders.rename(root / "elsewhere")

    found = {name: find_named(name, root) for name in ("demo", "orders", "elsewhere", "nobody")}

    assert found["demo"] == "demo"
    assert [found["orders"], found["elsewhere"]].count("elsewhere") == 1
    assert found["nobody"] is None
    assert find_named("demo", root / "demo") == "."


def done(started, finished, status="done"):
    times = {"created": started, "started": started, "finished": finished}
    return JobSummary(id="a", kind="profile", status=status, location="/jobs/a", **times)


@pytest.mark.parametrize("kept", [".", "out"])
def test_what_verbs_have_measured_is_used_while_the_code_is_the_same(root, profile, platform, kept):
    folder = WorkflowFolder.open(root / "demo")
    profile["source"] = profiled_source(folder)
    (root / kept).mkdir(exist_ok=True)
    (root / kept / "profile.json").write_text(json.dumps(profile))
    (root / kept / "platform.json").write_text(json.dumps(platform))
    seen = look_at_named("demo", root, {})
    assert {"profile", "platform"} <= seen["known"].keys()
    assert seen["found"][0] == f"Its profile is that of {Path(kept, 'profile.json')}. "
    assert len(seen["found"]) == 2
    (folder.path / "functions" / "first" / "handler.py").write_text("def handle(req): pass\n")
    assert "profile" not in look_at_named("demo", root, {})["known"]


def test_a_job_is_expected_to_take_what_earlier_ones_took():
    from chiron.services.dashboard.progress import expected, usual_s  # imports Dash: takes long

    at = "2026-01-01T00:00:{:02}+00:00".format
    earlier = [done(at(0), at(8)), done(at(0), at(50), "failed"), done(at(0), at(10))]

    assert usual_s([]) is None
    assert usual_s(earlier) == 9.0
    assert "about 5 s to go" in expected(4.0, 9.0)
    assert "longer than earlier jobs" in expected(9.5, 9.0)
    assert "to go" not in expected(4.0, None)


@browser
def test_a_card_leads_to_the_page_of_its_workflow_and_back_leads_to_all(
    open_page, deployed, orders, config, sound
):
    told = WatchEvent(
        at="2026-01-01T00:00:00Z",
        gateway=config.gateway_url,
        workflow="orders",
        planner="pgp",
        event="drift",
        message="slower than predicted",
    )
    Journal(config.state).append(told)
    Journal(config.state).append(told.model_copy(update={"workflow": "demo", "message": "other"}))
    page = open_page()

    page.get_by_role("link", name="orders").click()

    page.locator(".verdict").get_by_text("SLO missed").wait_for()
    assert page.url.endswith("/workflow/orders")
    assert "raised no" in page.inner_text("#executions tbody")
    assert "slower than predicted" in page.inner_text("#watch")
    assert "other" not in page.inner_text("#watch tbody")
    page.locator("#drawing img").wait_for()
    assert page.get_by_label("exactly").input_value() == "150"
    assert not page.locator("#canvas").is_visible()
    sound(page)  # the last look is a phone's
    box = page.locator("#drawing")
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    source = page.locator("#drawing img").get_attribute("src").partition("base64,")[2]
    workflow = WorkflowFolder.open(orders).workflow
    assert b64decode(source).decode() == svg(chart_of(workflow), workflow.name)

    page.go_back()
    page.locator("#live .card").nth(1).wait_for()
    assert not page.locator("#executions").is_visible()
    page.go_forward()
    page.locator(".verdict").get_by_text("SLO missed").wait_for()


@browser
@pytest.mark.slow
def test_a_page_is_about_its_workflow_alone(open_page, deployed, orders, root, drop):
    page = open_page("workflow/demo")
    page.get_by_text("demo: 2 tasks.").wait_for()
    assert page.title() == "demo - Chiron"
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function(
        """() => {
            const cy = document.querySelector("#graph")._cyreg.cy;
            const { x1, x2, y1, y2 } = cy.elements().renderedBoundingBox();
            const middle = [(x1 + x2) / 2 - cy.width() / 2, (y1 + y2) / 2 - cy.height() / 2];
            return x1 >= 0 && y1 >= 0 && middle.every((off) => Math.abs(off) < 2);
        }"""
    )

    page.get_by_text("Choose a workflow").click()
    drop(page, str(orders), "folder")
    page.get_by_text("the folder is of workflow orders, and this page is about demo").wait_for()

    page.goto(f"{page.url.removesuffix('demo')}nobody")
    page.get_by_text("nobody is not deployed on this gateway").wait_for()
    page.get_by_text("No workflow is shown").wait_for()


@browser
@pytest.mark.slow
def test_a_profile_that_lacks_is_measured_by_a_button(
    open_page, deployed, root, app, profile, platform, monkeypatch
):
    monkeypatch.setattr("chiron.services.dashboard.measuring.require_tracing", lambda _: None)
    (root / "demo" / "platform.json").write_text(json.dumps(platform))
    store = app.extensions["chiron"].store
    page = open_page("workflow/demo")
    measure = page.get_by_role("button", name="Measure the profile")
    panel = page.locator("#measuring .job").last

    measure.click()
    panel.get_by_text("queued").wait_for()
    first = store.claim(["profile"])
    store.add_progress(first.id, "tracing first")
    panel.get_by_text("tracing first").wait_for()
    panel.get_by_text("no earlier job says").wait_for()
    store.fail(first.id, Problem(code="raised", message="first raised KeyError: mend it"))
    panel.get_by_text("first raised KeyError: mend it").wait_for()

    measure.click()
    panel.get_by_text("queued").wait_for()
    second = store.claim(["profile"])
    cancel = panel.get_by_role("button", name="Cancel")
    cancel.focus()
    cancel.hover()
    page.mouse.down()
    store.add_progress(second.id, "tracing second")
    panel.get_by_text("tracing second").wait_for()
    assert cancel.evaluate("button => button === document.activeElement")
    page.mouse.up()
    panel.get_by_text("cancelling: what it has deployed is removed first").wait_for()
    store.fail(second.id, Problem(code="stopped", message="it was told to end"))
    panel.get_by_text("the job was cancelled").wait_for()
    page.get_by_role("link", name="Deployed").first.click()
    page.get_by_role("link", name="orders").click()
    page.locator(".verdict").get_by_text("SLO missed").wait_for()
    page.wait_for_function("() => !document.querySelector('#measuring .job')")
    page.go_back()
    page.get_by_role("link", name="demo").click()
    page.get_by_text("demo: 2 tasks.").wait_for()

    measure.click()
    panel.get_by_text("queued").wait_for()
    store.finish(store.claim(["profile"]).id, profile)
    page.get_by_text("Its profile is that of job").wait_for()
    page.wait_for_selector("#verdict")
    assert measure.count() == 0
