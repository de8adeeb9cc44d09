"""Spans of requests over three wraps, as a collector gets them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
import requests

from chiron.openfaas.stack import deployment
from chiron.workflow.plan import Plan

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GIVEN = f"00-{TRACE}-{PARENT}-01"
HOME, FAR, NEAR = "spans-home", "spans-far", "spans-near"
#: Every task has its function; `left` is an output of the first one.
WORKFLOW = {
    "tasks": {name: name for name in ("split", "own", "far", "near", "join")},
    "edges": [
        *(["split", "own"], ["split", "far"], ["split#left", "near"]),
        *(["own", "join"], ["far", "join"], ["near", "join"]),
    ],
}
APART = {HOME: [["split", "join"], ["own"]], FAR: [[], ["far"]], NEAR: [["near"]]}
WRAP_OF = {task: wrap for wrap, processes in APART.items() for its in processes for task in its}
HANDLER = """
import json, os, time
from chiron_io import emit

def handle(event, context):
    text, name = event.body.decode(), "{name}"
    if name == "split":
        emit("left", text)
        return {{"body": text}}
    time.sleep(0.1 if name == "far" else 0.02)
    if name == "far" and "crash" in text:
        os.kill(os.getpid(), 9)
    if name == "near" and "crash" in text:
        time.sleep(0.3)
    return {{"body": text if name == "join" else json.dumps([name, event.headers["traceparent"]])}}
"""

Deploy = Callable[..., AbstractContextManager[Callable[..., Any]]]


@pytest.fixture
def deployed(place: Any, collector: Any, write_folder: Any, tmp_path: Any) -> Deploy:
    """Deploys plans of the workflow, whose functions name the collector; gives what asks."""

    @contextmanager
    def deployed(plan: Plan, **variables: str) -> Any:
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, **variables}
        folder = write_folder(
            tmp_path / "spans",
            WORKFLOW,
            {name: HANDLER.format(name=name) for name in WORKFLOW["tasks"]},
            {},
            {name: {"environment": variables} for name in WORKFLOW["tasks"]},
        )

        def ask(body: str = "in", wrap: str = HOME, **headers: str) -> requests.Response:
            url = f"{place.gateway.url}/function/{wrap}"
            return requests.post(url, data=body, headers=headers, timeout=60)

        with place.launcher.launch(folder.workflow, folder, plan) as running:
            ask.invoke = running.invoke  # type: ignore[attr-defined]
            yield ask

    return deployed


def test_a_request_over_three_wraps_is_one_trace(
    deployed: Deploy, collector: Any, plan_by_hand: Any
) -> None:
    with deployed(plan_by_hand(APART, "fork", workflow="spans")) as ask:
        began_ns = time.time_ns()
        answer = ask(traceparent=GIVEN, tracestate="vendor=1")
        ended_ns = time.time_ns()
        spans = collector.wait_for(names=WRAP_OF)
    assert answer.status_code == 200, answer.text
    assert {span.trace_id for span in spans} == {TRACE}
    assert len({span.span_id for span in spans}) == len(spans)
    (request,) = (span for span in spans if span.kind == 2)
    assert (request.name, request.service) == ("spans", HOME)
    assert (request.parent_id, request.state) == (PARENT, "vendor=1")
    assert request.attributes["http.response.status_code"] == 200
    assert began_ns <= request.start_ns < request.end_ns <= ended_ns
    assert not any(span.error for span in spans)

    tasks = {span.name: span for span in spans if "chiron.function" in span.attributes}
    tasks = {name: span for name, span in tasks.items() if name in WORKFLOW["tasks"]}
    assert {name: span.service for name, span in tasks.items()} == WRAP_OF
    assert tasks["far"].attributes["chiron.process"] == 1
    assert tasks["split"].end_ns <= tasks["far"].start_ns
    assert max(tasks[name].end_ns for name in ("own", "far", "near")) <= tasks["join"].start_ns
    seen = dict(json.loads(answer.text))
    assert {name: parent[36:52] for name, parent in seen.items()} == {
        name: tasks[name].span_id for name in ("own", "far", "near")
    }
    assert {parent[:36] for parent in seen.values()} == {f"00-{TRACE}-"}

    others = [span for span in spans if span is not request and span not in tasks.values()]
    found = sorted((span.name, span.service, span.attributes.get("chiron.task")) for span in others)
    starts = [("start", FAR, None), ("start", HOME, None)]
    transfers = [("transfer", to, task) for to, task in [(FAR, "far"), (NEAR, "near")]]
    back = [("transfer", HOME, "join")]
    assert found == sorted([("emit", HOME, "split"), *starts, *transfers, *back])
    for span in spans:
        assert request.start_ns <= span.start_ns <= span.end_ns <= request.end_ns
        parent = tasks["split"] if span.name == "emit" else request
        assert span is request or span.parent_id == parent.span_id
        assert span.resource["faas.name"] == span.service


def named(spans: list[Any], *names: str) -> dict[str, Any]:
    """The spans of tasks, or of these."""
    return {span.name: span for span in spans if span.name in (names or WORKFLOW["tasks"])}


def test_a_request_that_fails_has_the_spans_of_what_ran(
    deployed: Deploy, collector: Any, plan_by_hand: Any, wait_until: Any, monkeypatch: Any
) -> None:
    """Also over the gateway, which wraps without a secret call each other by."""
    monkeypatch.setattr("chiron.deployment.deploy.spec_of", deployment)
    plan = plan_by_hand(APART, "pool", workflow="spans", attempts=1)
    with deployed(plan) as ask:
        answer = ask("crash", traceparent=GIVEN)
        wait_until(lambda: {"far", "near"} <= named(collector.wait_for()).keys())
    spans = collector.spans
    told = answer.json()
    code = "process-died"
    assert (answer.status_code, told["code"], told["function"]) == (500, code, "far")
    (request,) = (span for span in spans if span.kind == 2)
    assert request.error == f"{code}: {told['message']}"
    assert request.attributes["error.type"] == code
    assert request.attributes["http.response.status_code"] == 500
    tasks = named(spans)
    assert {"split", "own", "far", "near"} >= tasks.keys() >= {"split", "far", "near"}
    assert (tasks["far"].error, tasks["far"].attributes["error.type"]) == (told["message"], code)
    assert [name for name, span in tasks.items() if span.error] == ["far"]
    assert {span.service for name, span in tasks.items() if name == "far"} == {FAR}
    assert {span.parent_id for span in tasks.values()} == {request.span_id}
    assert len(spans) == len({span.span_id for span in spans})
    assert tasks["far"].end_ns - tasks["far"].start_ns > 20e6


def test_who_is_not_sampled_is_not_exported_and_what_has_no_trace_begins_one(
    deployed: Deploy, collector: Any, plan_by_hand: Any
) -> None:
    with deployed(plan_by_hand(APART, workflow="spans")) as ask:
        unsampled = f"00-{TRACE}-{PARENT}-00"
        assert {each for _, each in json.loads(ask(traceparent=unsampled).text)} == {unsampled}
        answers = [json.loads(ask(traceparent=given).text) for given in ("", "00-no-trace-01")]
        spans = collector.wait_for(2)
    requests_ = [span for span in spans if span.kind == 2]
    assert [span.parent_id for span in requests_] == ["", ""]
    assert TRACE not in {span.trace_id for span in spans}
    traces = [{parent.split("-")[1] for _, parent in answer} for answer in answers]
    assert traces == [{span.trace_id} for span in requests_]
    assert traces[0] != traces[1]


@pytest.mark.slow
def test_wraps_that_the_client_calls_are_one_trace(
    deployed: Deploy, collector: Any, plan_by_hand: Any
) -> None:
    plan = plan_by_hand(
        {f"spans-{name}": [[name]] for name in WORKFLOW["tasks"]},
        workflow="spans",
        planner="one-to-one",
        orchestrator="client",
    )
    with deployed(plan, OTEL_SERVICE_NAME="shop") as ask:
        ask.invoke(b"in")  # type: ignore[attr-defined]
        spans = collector.wait_for(5)
    assert len({span.trace_id for span in spans}) == 1
    served = [span for span in spans if span.kind == 2]
    assert len({span.parent_id for span in served}) == 1
    assert {span.resource["faas.name"] for span in served} == {
        f"spans-{name}" for name in WORKFLOW["tasks"]
    }
    assert {span.service for span in spans} == {"shop"}
