"""Measures the dashboard in Chromium: first paint, plans of two workflows, one of 1,000 tasks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from chiron.evaluation.optional import missing
from chiron.evaluation.runtime.rounds import Figure
from chiron.installation.packages import extra_line
from chiron.workflow.errors import ChironError

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

#: Tasks of the large workflow, all but two of them parallel, and functions that they call.
TASKS, _FUNCTIONS = 1000, 10
#: CPU time of each of these functions, in milliseconds.
_COMPUTES_MS = 3.0
_BOUND_MS = 120_000
_FILES, _NOW = "#files", "performance.now()"
#: Returns the time of the first contentful paint, in milliseconds since navigation.
_PAINTED = """() => new Promise(done => new PerformanceObserver(list => {
    const paint = list.getEntries().find(entry => entry.name === "first-contentful-paint");
    if (paint) done(paint.startTime);
}).observe({type: "paint", buffered: true}))"""
#: Moves the slider to an SLO; returns the milliseconds until its plan is painted.
_MOVE = """value => new Promise(done => {
    const slider = document.getElementById("slo"), shown = document.getElementById("summary");
    const began = performance.now();
    new MutationObserver((_, observer) => {
        if (!shown.innerText.includes(`the SLO of ${value.toFixed(1)} ms`)) return;
        observer.disconnect();
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
    }).observe(shown, {subtree: true, childList: true, characterData: true});
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(slider, value);
    slider.dispatchEvent(new Event("input", {bubbles: true}));
})"""
_DRAWN = "count => document.getElementById('graph')._cyreg?.cy.nodes().length === count"
#: The documents to open in the dashboard, by the names of their files without ``.json``.
Documents = Mapping[str, Any]


def measure_dashboard(
    url: str, small: Documents, tasks: int, rounds: int, tell: Callable[[str], None]
) -> tuple[Figure, ...]:
    """Load the dashboard at `url` `rounds` times, then plan for `rounds` SLOs.

    It plans the workflow `small` of `tasks` tasks, and then a workflow of `TASKS`.

    Raises ``no-browser`` if Playwright or Chromium is missing.
    """
    with _chromium() as browser:
        tell(f"loading the page {rounds} times")
        found = [*_first_paint(browser, url, rounds)]
        for documents, count in ((small, tasks), (large(small["platform"]), TASKS)):
            tell(f"planning {count} tasks {rounds} times")
            found += _workflow(browser, url, documents, count, rounds)
        return tuple(found)


def large(platform: Any) -> Documents:
    """Return a workflow of `TASKS` tasks and its profile: all tasks but two are parallel."""
    middle = [f"t{number}" for number in range(1, TASKS - 1)]
    names = ["first", *middle, "last"]
    tasks = {name: f"f{number % _FUNCTIONS}" for number, name in enumerate(names)}
    edges = [edge for name in middle for edge in (["first", name], [name, "last"])]
    period = {"kind": "cpu", "start_ms": 0.0, "duration_ms": _COMPUTES_MS}
    function = {"latency_ms": _COMPUTES_MS, "periods": [period]}
    functions = {f"f{number}": function for number in range(_FUNCTIONS)}
    return {
        "workflow": {"name": "large", "tasks": tasks, "edges": edges},
        "profile": {"format": 1, "workflow": "large", "functions": functions},
        "platform": platform,
    }


@contextmanager
def _chromium() -> Iterator[Browser]:
    program = shutil.which("chromium")
    if lacking := missing("dashboard"):
        raise ChironError("no-browser", f"needs {lacking.name}: {extra_line(lacking.extra)}")
    if program is None:
        raise ChironError("no-browser", "needs Chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright  # loaded on use: nothing else needs it

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


def _first_paint(browser: Browser, url: str, loads: int) -> Iterator[Figure]:
    painted, there = [], []
    for _ in range(loads):
        page = browser.new_page()  # in a new context, with an empty cache
        page.goto(url)
        page.wait_for_selector(_FILES)
        there.append(page.evaluate(_NOW))
        painted.append(page.evaluate(_PAINTED))
        page.close()
    yield Figure.of("first contentful paint", painted)
    yield Figure.of("fields are there", there)


def _workflow(
    browser: Browser, url: str, documents: Documents, tasks: int, moves: int
) -> Iterator[Figure]:
    page = browser.new_page()
    page.set_default_timeout(_BOUND_MS)
    page.goto(url)
    began = _drop(page, documents)
    page.wait_for_function(_DRAWN, arg=tasks)
    drawn = page.evaluate(_NOW) - began
    page.wait_for_selector("#verdict")
    planned = page.evaluate(_NOW) - began
    page.wait_for_selector("#front-table tbody tr")  # computed beside the plan
    most_ms = page.evaluate("Number(document.getElementById('slo').max)")
    slos = (round(most_ms * (number + 1) / (moves + 1), 1) for number in range(moves))
    moved = [page.evaluate(_MOVE, slo) for slo in slos]
    page.close()
    yield Figure.of(f"{tasks} tasks: graph after the drop", [drawn])
    yield Figure.of(f"{tasks} tasks: plan after the drop", [planned])
    yield Figure.of(f"{tasks} tasks: plan after the slider", moved)


def _drop(page: Page, documents: Documents) -> float:
    """Choose `documents` in the page's file dialog; return the time by the page's clock."""
    with page.expect_file_chooser() as dialog:
        page.locator("[data-choose=files]").click()
    files: list[Any] = [
        {"name": f"{name}.json", "mimeType": "", "buffer": json.dumps(document).encode()}
        for name, document in documents.items()
    ]
    began: float = page.evaluate(_NOW)
    dialog.value.set_files(files)
    return began
