"""What is deployed, in a real browser: rates, an execution that failed, and what a watcher told."""

from __future__ import annotations

import re
import threading
from dataclasses import replace

import pytest
import requests

from chiron.deployment.journal import Journal, WatchEvent
from chiron.deployment.live import Live
from chiron.workflow.errors import ChironError

pytestmark = pytest.mark.browser
NAME = "small-wrap1"
TASKS = ("Split it", "Wave", "M1", "M2", "M3", "Zusammen/fügen? {50 %}")


@pytest.fixture
def config(config, launcher, tmp_path, monkeypatch):
    """Services that look at the gateway that tests share."""
    monkeypatch.setenv("OPENFAAS_CONFIG", str(tmp_path))
    return replace(config, gateway_url=launcher.gateway.url)


@pytest.fixture
def deployed(launcher, small, plan_by_hand):
    """The URL of a workflow that is deployed in one wrap, for which everything was asked."""
    predicted = {"latency_ms": 40.0, "low_ms": 0.0, "high_ms": 9000.0, "warnings": ("a guess",)}
    plan = plan_by_hand({NAME: [TASKS]}, slo_ms=9000.0, predicted=predicted)
    with launcher.launch(small.workflow, small, plan):
        yield f"{launcher.gateway.url}/function/{NAME}"


@pytest.fixture
def load(deployed):
    """A client that calls the workflow again and again."""
    ended = threading.Event()

    def call():
        while not ended.wait(0.05):
            requests.post(deployed, data=b'"fine"', timeout=30)

    thread = threading.Thread(target=call)
    thread.start()
    yield
    ended.set()
    thread.join()


def cells(page, caption):
    """The texts of the first row of a table, by what its columns are called."""
    table = page.get_by_role("region", name=caption)
    heads = table.locator("th").all_inner_texts()
    row = table.locator("tbody tr").first.locator("td").all_inner_texts()
    return dict(zip(heads, row, strict=True))


def figures(page, place):
    """The figures of a part of the page, by their names."""
    names, values = (page.locator(f"{place} {tag}").all_inner_texts() for tag in ("dt", "dd"))
    return dict(zip(names, values, strict=True))


def test_load_a_failure_and_a_decision_are_seen_while_they_come(
    open_page, load, deployed, config, sound, wait_until
):
    page = open_page()
    page.locator("#live .card strong.met").wait_for()
    last_minute = re.compile(r"(\d+) of (\d+) requests were within it; the SLO is 95 %")
    page.locator("#live .card").get_by_text(last_minute).wait_for()
    counted = last_minute.search(page.inner_text("#live .card"))
    assert counted and counted[1] == counted[2]
    page.get_by_role("link", name="small").click()
    page.locator(".verdict").get_by_text(last_minute).wait_for()
    found = figures(page, "#live")
    assert (found["SLO"], found["Planner"]) == ("9000 ms", "pgp")
    assert float(found["Requests/s"]) > 0
    p50, p95, p99 = (float(found[name].removesuffix(" ms")) for name in ("p50", "p95", "p99"))
    assert 0 < p50 <= p95 <= p99 < 9000
    assert found["Mean in the range"] == "yes"
    page.get_by_text("Why the prediction is unreliable (1)").click()
    page.get_by_text("a guess").wait_for()
    wrap = cells(page, "Wraps as they are deployed")
    assert (wrap["Wrap"], wrap["Replicas"], wrap["Answering"]) == (NAME, "1/1", "1")
    assert "wave" in wrap["Functions"]
    page.get_by_text("No execution has failed, as far as the logs go back.").wait_for()
    assert figures(page, "#executions")["Last failure"] == "none"

    region = page.get_by_role("region", name="Wraps as they are deployed")
    region.focus()
    ident = "1a2b3c4d-0000"
    headers = {"X-Call-Id": ident}
    assert requests.post(deployed, data=b'"boom"', headers=headers, timeout=30).status_code == 500
    told = WatchEvent(
        at="2026-01-01T00:00:00Z",
        gateway=config.gateway_url,
        workflow="small",
        planner="pgp",
        event="window",
        message="12 requests in 9.0 ms",
        outside=2,
    )
    Journal(config.state).append(told)
    page.locator("#live-executions td code").wait_for()
    failure = cells(page, "The last executions that failed")
    assert (failure["Execution"], failure["Function"]) == (ident[:8], "wave")
    assert failure["Error"].startswith("raised ValueError: no waves today")
    page.get_by_text("12 requests in 9.0 ms; 2 in a row outside").wait_for()
    assert region.evaluate("region => region === document.activeElement")
    sound(page)


@pytest.mark.slow
def test_only_what_somebody_can_see_is_asked_for(open_page, monkeypatch, wait_until):
    asked = []
    monkeypatch.setattr("chiron.services.dashboard.feed.LiveFeed.newest", lambda _: asked.append(1))
    page = open_page()
    wait_until(lambda: len(asked) >= 2)
    page.locator("#jobs").scroll_into_view_if_needed()

    def rests():
        before = len(asked)
        page.wait_for_timeout(1000)
        return len(asked) == before

    wait_until(rests)
    page.locator("#live").scroll_into_view_if_needed()
    before = len(asked)
    wait_until(lambda: len(asked) >= before + 2)


@pytest.mark.slow
def test_a_gateway_that_is_away_is_told_once_and_the_page_goes_on(
    open_page, monkeypatch, wait_until
):
    away = ChironError("no-gateway", "no OpenFaaS gateway answers at http://gateway", status=503)
    answers, asked = [away], []

    def newest(_):
        asked.append(1)
        if answers == [away]:
            raise away
        return Live(gateway="http://gateway", at="2026-01-01T00:00:00+00:00", workflows=())

    monkeypatch.setattr("chiron.services.dashboard.feed.LiveFeed.newest", newest)
    page = open_page()
    faults = page.locator("#live-faults")
    faults.get_by_text("no OpenFaaS gateway answers at http://gateway").wait_for()
    faults.evaluate(
        "faults => { window.changes = 0; new MutationObserver(() => window.changes++)"
        ".observe(faults, {childList: true, subtree: true, characterData: true}) }"
    )
    before = len(asked)
    wait_until(lambda: len(asked) >= before + 4)
    assert page.evaluate("window.changes") == 0
    answers.clear()
    page.get_by_text("Nothing is deployed").wait_for()
    assert faults.inner_text() == ""

    answers.append(away)
    faults.get_by_text("no OpenFaaS gateway answers at http://gateway").wait_for()
    assert page.get_by_text("Nothing is deployed").is_visible()  # it was seen last
    assert "as of 2026-01-01 00:00:00 UTC" in page.inner_text("#live-as-of")
