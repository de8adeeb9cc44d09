"""The main path in a real browser: a folder is chosen, planned, deployed and measured."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from chiron.cli.place import build_local
from chiron.deployment.deploy import remove_all
from chiron.deployment.launcher import Launcher
from chiron.openfaas.client import Gateway
from chiron.services.app import create_app
from chiron.workflow.folder import WorkflowFolder

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.usefixtures("briefly_proven"),
]
FINRA = Path(__file__).parents[2] / "benchmarks" / "finra"
BOUND_MS = 90_000


@pytest.fixture
def app(config, embedded):
    """Services that deploy on the embedded gateway."""

    @contextmanager
    def connect():
        with Gateway(embedded.url) as opened:
            yield Launcher(opened, build_local)

    app = create_app(replace(config, connect=connect, gateway_url=embedded.url))
    with app.extensions["chiron"].running():
        yield app
    with connect() as launcher:
        remove_all(launcher.gateway, [each.name for each in launcher.gateway.functions()])


@pytest.fixture
def folder(tmp_path, platform):
    """Finra with a profile and a platform, so that nothing has to be traced."""
    folder = tmp_path / "finra"
    shutil.copytree(FINRA, folder)
    period = {"kind": "cpu", "start_ms": 0.0, "duration_ms": 3.0}
    functions = WorkflowFolder.open(folder).workflow.functions
    profiles = {name: {"latency_ms": 3.0, "periods": [period]} for name in functions}
    profile = {"format": 1, "workflow": "finra", "functions": profiles}
    (folder / "profile.json").write_text(json.dumps(profile))
    (folder / "platform.json").write_text(json.dumps(platform))
    return folder


def test_a_chosen_folder_is_planned_deployed_and_measured(
    open_page, folder, drop, app, sound, address
):
    page = open_page()
    # The first plan keeps it, however busy the machine is.
    page.get_by_label("exactly").fill("9000")
    page.keyboard.press("Tab")
    drop(page, str(folder), "folder")
    page.wait_for_selector("#verdict")
    page.get_by_label("Planner").select_option("faastlane")
    page.get_by_text("faastlane:").first.wait_for()

    page.get_by_role("button", name="Deploy").click()

    page.locator("#deploying progress").wait_for(timeout=BOUND_MS)
    deployed = page.locator("#deployed")
    deployed.get_by_text("95 % of requests within").wait_for(timeout=BOUND_MS)
    assert "faastlane" in deployed.locator("tbody").first.inner_text()
    tries = deployed.get_by_role("table", name="Plans that were tried")
    assert "the SLO: p95 " in tries.inner_text()
    (job,) = app.extensions["chiron"].store.newest("deployment")
    report = app.extensions["chiron"].store.get(job.id).result
    assert f"{report['measured']['p95_ms']:.1f}" in deployed.inner_text()
    page.locator("#job-list").get_by_text("95 % of requests within").wait_for()

    measure = page.get_by_role("button", name="Measure")
    measure.click()
    page.wait_for_selector("#gantt .bar.measured", timeout=BOUND_MS)
    told = page.inner_text("#timeline-told")
    assert "the median of 5 requests" in told
    assert "Off most: " in told
    page.get_by_text("Timeline as a table").click()
    tasks = WorkflowFolder.open(folder).workflow.by_name
    assert page.locator("#timeline-table tbody tr").count() == len(tasks)
    widths = "[document.querySelector('#gantt .rows').offsetWidth, innerWidth]"
    before, window = page.evaluate(widths)
    assert before <= window
    page.get_by_label("Zoom").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate(widths)[0] > 1.5 * before
    sound(page)

    page.reload()
    page.locator("#deployed").get_by_text("95 % of requests within").wait_for()

    page.goto(f"{address}workflow/finra")
    page.locator(".verdict").wait_for()
    page.wait_for_selector("#gantt .bar.measured")
    assert "faastlane" in page.inner_text("#live .facts")


def test_what_is_not_deployed_cannot_be_measured_and_that_is_said(open_page, folder, drop, app):
    page = open_page()
    drop(page, str(folder), "folder")
    page.wait_for_selector("#gantt .bar.predicted")

    page.get_by_role("button", name="Measure").click()

    page.locator("#timeline-faults").get_by_text("not-deployed").wait_for()
    assert page.locator("#gantt .bar.predicted").count() > 0
