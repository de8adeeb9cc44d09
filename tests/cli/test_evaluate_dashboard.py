"""`chiron evaluate dashboard` measures the dashboard in Chromium, or says what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from chiron.evaluation import dashboard
from chiron.evaluation.dashboard import TASKS, large, measure_dashboard
from chiron.evaluation.runtime.rounds import RuntimeReport
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import parse_workflow

REPOSITORY = Path(__file__).parents[2]


def test_the_large_workflow_has_as_many_tasks_as_it_says():
    workflow = parse_workflow(large({})["workflow"])

    assert (len(workflow.tasks), len(workflow.stages)) == (TASKS, 3)


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setattr(dashboard.shutil, "which", lambda _: None)

    with pytest.raises(ChironError) as refusal:
        measure_dashboard("http://127.0.0.1:9", {}, 0, 1, print)
    assert refusal.value.code == "no-browser"


@pytest.mark.browser
@pytest.mark.soak
def test_the_dashboard_is_measured(chiron, tmp_path):
    pytest.importorskip("playwright.sync_api", reason="needs playwright")
    quick = REPOSITORY / "evaluation" / "results" / "quick"
    files = [
        f"--profile={quick / 'finra' / 'profile.json'}",
        f"--platform={quick / 'platform.json'}",
    ]
    finra = REPOSITORY / "benchmarks" / "finra"

    result = chiron("evaluate", "dashboard", finra, *files, "--quick", "-o", tmp_path)

    assert result.status == 0, result.stderr
    report = RuntimeReport.model_validate_json((tmp_path / "dashboard.json").read_text())
    found = {figure.name: figure.median for figure in report.figures}
    assert 0 < found["first contentful paint"] < found["fields are there"]
    assert 0 < found["6 tasks: plan after the slider"] < 5000
    assert found[f"{TASKS} tasks: graph after the drop"] < 60_000
