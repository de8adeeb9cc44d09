"""The dashboard in a real browser: workflow, plan and jobs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from chiron.evaluation.dashboard import TASKS, large
from chiron.openfaas.credentials import Credentials
from chiron.services.app import create_app
from chiron.services.dashboard.uploads import Upload
from chiron.services.jobs import Submission
from chiron.workflow.plan import Plan

pytestmark = pytest.mark.browser


@pytest.fixture
def files(workflow, profile, platform):
    """The files of the workflow, as a browser sends them."""
    parts = {"workflow": workflow, "profile": profile, "platform": platform}
    return [as_file(f"{name}.json", json.dumps(part)) for name, part in parts.items()]


def as_file(name, text):
    content = text.encode() if isinstance(text, str) else text
    return {"name": name, "mimeType": "application/octet-stream", "buffer": content}


def test_files_become_a_graph_and_a_plan_without_serious_findings(open_page, files, drop, sound):
    page = open_page()

    drop(page, files)

    page.get_by_text("demo: 2 tasks.").wait_for()
    page.wait_for_selector("#verdict")
    page.wait_for_selector("#gantt .bar")
    assert "Meets the SLO" in page.inner_text("#verdict")
    sound(page)
    labels = page.evaluate(
        "document.querySelector('#graph')._cyreg.cy.nodes().map(n => n.data('label'))"
    )
    assert labels == ["First\ndemo-wrap1, main process", "Second\ndemo-wrap1, main process"]


@pytest.mark.slow
def test_the_plan_follows_the_slider_and_the_planner_and_is_exported(open_page, files, drop):
    page = open_page()
    drop(page, files)
    page.wait_for_selector("#verdict")

    page.locator("#slo").focus()
    page.keyboard.press("Home")
    page.get_by_text("Does not meet the SLO").wait_for()
    page.get_by_label("Planner").select_option("one-to-one")
    page.locator("#summary tbody tr").nth(1).wait_for()

    with page.expect_download() as download:
        page.get_by_role("button", name="Export plan.json").click()
    plan = Plan.model_validate_json(download.value.path().read_text())
    assert (plan.planner, plan.slo_ms) == ("one-to-one", 1.0)


@pytest.mark.slow
def test_the_slo_is_what_the_user_typed_whatever_is_shown(open_page, files, drop):
    page = open_page()
    typed = page.get_by_label("exactly")
    typed.fill("4321.5")
    page.keyboard.press("Tab")
    drop(page, files)
    page.wait_for_selector("#verdict")
    assert typed.input_value() == "4321.5"
    assert float(page.locator("#slo").input_value()) == 4321.5
    assert float(page.locator("#slo").get_attribute("max")) >= 4321.5


@pytest.mark.slow
def test_faults_are_shown_where_they_are_and_nothing_breaks(open_page, files, workflow, drop):
    page = open_page()
    broken = json.loads(json.dumps(workflow))
    broken["States"]["First"]["Next"] = "Nowhere"

    drop(page, as_file("machine.json", json.dumps(broken)))
    fault = page.locator("#workflow-faults .fault").first
    fault.wait_for()
    assert "States.First" in fault.locator("code").inner_text()
    fault.get_by_text("As it is written").click()
    assert "Nowhere" in fault.locator("pre").inner_text()
    code = fault.locator("strong").inner_text()
    page.wait_for_function(
        "() => document.querySelector('#graph')._cyreg.cy.nodes().map(n => n.data('label'))"
        f".includes('First\\n{code}')"
    )

    drop(page, as_file("folder.zip", "no archive"))
    page.get_by_text("bad-archive").wait_for()
    drop(page, files)
    page.wait_for_selector("#verdict")
    assert page.locator("#workflow-faults .fault, #plan-faults .fault").count() == 0


@pytest.mark.slow
def test_a_chosen_folder_is_shown_with_its_handlers_but_not_with_what_is_left_out(
    open_page, root, app, monkeypatch, drop
):
    names = []
    packed = Upload.packed
    monkeypatch.setattr(Upload, "packed", lambda self: names.extend(self.names) or packed(self))
    for name in (".git", "functions/first/__pycache__"):
        (root / "demo" / name).mkdir()
        (root / "demo" / name / "left-out").write_text("")
    page = open_page()

    drop(page, str(root / "demo"), "folder")

    page.get_by_text("demo: 2 tasks.").wait_for()
    handlers = [f"demo/functions/{name}/handler.py" for name in ("first", "second")]
    assert sorted(names) == [*handlers, "demo/stack.yaml", "demo/workflow.json"]


@pytest.mark.slow
def test_a_folder_that_is_dropped_anywhere_is_shown(open_page, root, wait_until):
    page = open_page()
    browser = page.context.new_cdp_session(page)

    def is_shown() -> bool:  # a page that still loads hears no drop
        for kind in ("dragEnter", "dragOver", "drop"):
            data = {"items": [], "files": [str(root / "demo")], "dragOperationsMask": 1}
            event = {"type": kind, "x": 600, "y": 700, "data": data}
            browser.send("Input.dispatchDragEvent", event)
        page.wait_for_timeout(1000)
        return bool(page.get_by_text("demo: 2 tasks.").is_visible())

    wait_until(is_shown)


@pytest.mark.slow
def test_what_is_too_large_is_said_and_not_sent(open_page, tmp_path, drop):
    page = open_page()
    with (tmp_path / "large.zip").open("wb") as file:
        file.truncate(41 * 1024 * 1024)

    drop(page, str(tmp_path / "large.zip"))

    page.get_by_text("too-large").wait_for()
    page.get_by_text("what was dropped has 41 MiB").wait_for()


@pytest.mark.slow
def test_what_the_server_refuses_or_leaves_unanswered_is_said(browser, address):
    page = browser.new_page()
    page.goto(address)
    page.wait_for_selector("#files")
    busy = json.dumps({"code": "busy", "message": "much is computed already: try again soon"})
    page.route("**/_dash-update-component*", lambda r: r.fulfill(status=429, body=busy))

    page.get_by_role("button", name="Show").click()
    page.get_by_role("alert").get_by_text("busy: much is computed already").wait_for()

    page.unroute_all()
    page.route("**/_dash-update-component*", lambda r: r.abort())
    page.get_by_role("button", name="Show").click()
    page.get_by_role("alert").get_by_text("The server does not answer.").wait_for()
    page.close()


@pytest.mark.slow
def test_a_thousand_tasks_are_shown_and_the_page_answers(open_page, drop, platform):
    page = open_page()
    page.set_default_timeout(90_000)
    documents = large(platform)

    drop(page, [as_file(f"{name}.json", json.dumps(each)) for name, each in documents.items()])

    page.locator("#tasks tbody tr").nth(TASKS - 1).wait_for(state="attached")
    page.wait_for_selector("#verdict")
    page.locator("#gantt .rows > div").nth(TASKS).wait_for(state="attached")
    page.get_by_text("Tasks as a table").click()
    page.locator("#tasks tbody tr").first.wait_for()


@pytest.mark.slow
def test_jobs_are_listed_and_cancelled(open_page, app):
    store = app.extensions["chiron"].store
    store.submit(Submission(id="a1", kind="calibrate", params={}))
    page = open_page()

    page.get_by_role("button", name="Cancel calibrate a1").click()

    page.get_by_text("cancelled").first.wait_for()
    assert store.get("a1").status == "cancelled"


def test_a_token_is_the_password_that_the_browser_asks_for(browser, config, serving):
    secret = Credentials.bearer("long-enough-a-token")
    with serving(create_app(replace(config, secret=secret))) as address:
        for password, status in (("long-enough-a-token", 200), ("another-token", 401)):
            credentials = {"username": "anybody", "password": password}
            with browser.new_page(http_credentials=credentials) as page:
                answer = page.goto(address)
                assert answer.status == status
                if status == 200:
                    page.get_by_role("heading", name="Workflow").wait_for()
                else:
                    sentence = "the services ask for credentials (Bearer): send the right ones\n"
                    assert answer.text() == sentence
