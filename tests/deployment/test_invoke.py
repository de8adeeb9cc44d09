"""Invoking: who is called with what, and what becomes of the answers that are errors."""

from __future__ import annotations

import json
import socket

import pytest

from chiron.deployment.caller import Caller
from chiron.deployment.invoke import Invoker, find_invoker
from chiron.deployment.route import StagedRoute, TaskCall
from chiron.generator.annotations import annotate, read_flow
from chiron.openfaas.objects import FunctionStatus
from chiron.workflow.errors import ChironError
from chiron.workflow.model import Task
from chiron.workflow.timeline import Span, Timeline, Traced
from chiron.workflow.tracing import KEY_ANNOTATION

#: Two tasks at once, then one that gets both, then the workflow's answer: a list of two.
ROUTE = StagedRoute(
    [
        [TaskCall(Task("0", "left", None)), TaskCall(Task("1", "right", None))],
        [TaskCall(Task("2", "both", ("1", "0")))],
    ],
    ("2", "0"),
)
ENTRY = StagedRoute([[TaskCall(Task("entry", "entry", None))]], "entry")


@pytest.fixture
def answering(behind):
    """Functions that answer with fixed texts."""

    def answer(**texts: str):
        for name, text in texts.items():
            behind.functions[name] = lambda _body, text=text: (200, text.encode())
        return behind

    return answer


def bodies(behind) -> dict[str, bytes]:
    return {name: body for name, body, _ in behind.calls}


def traced(output, task):
    """What a wrap answers to a traced request that `task` took 0.01 ms for."""
    span = Span(kind="task", start_ms=0.01, end_ms=0.02, wrap=task, process=0, task=task)
    told = Timeline(workflow="w", source="measured", latency_ms=0.03, spans=(span,))
    return Traced(output=output, timeline=told).model_dump_json()


def test_the_client_hands_outputs_on_byte_for_byte(answering):
    behind = answering(left='{"a" : 1.0}', right="no JSON ü", both="4.20 ")
    with Invoker(behind.url, ROUTE) as invoker:
        answer = invoker.invoke(b'{"request": 1e3}')
    called = bodies(behind)
    assert called["left"] == called["right"] == b'{"request": 1e3}'
    assert called["both"].decode() == '["no JSON ü",{"a" : 1.0}]'
    assert answer.output == '[4.20,{"a" : 1.0}]'
    assert answer.timelines == ()
    assert answer.latency_ms > 0


def test_a_failing_function_ends_the_workflow(answering):
    behind = answering(left="1", both="3")
    error = {"code": "raised", "message": "ValueError: no", "function": "lastpx"}
    behind.functions["right"] = lambda _: (500, json.dumps(error).encode())
    with Invoker(behind.url, ROUTE) as invoker, pytest.raises(ChironError) as failed:
        invoker.invoke(b"{}")
    assert (failed.value.code, failed.value.functions) == ("raised", ("lastpx",))
    assert failed.value.message == "function lastpx failed: ValueError: no"
    assert "both" not in bodies(behind)


def test_a_workflow_that_ends_in_fail_fails_after_its_tasks_ran(answering):
    behind = answering(only="1")
    route = StagedRoute([[TaskCall(Task("0", "only", None))]], "0", ["Sunk", "ice"])
    with Invoker(behind.url, route) as invoker, pytest.raises(ChironError) as failed:
        invoker.invoke(b"{}")
    assert (failed.value.code, failed.value.message) == ("workflow-failed", "Sunk: ice")
    assert bodies(behind) == {"only": b"{}"}


def test_a_request_that_is_no_text_arrives_as_it_is(answering):
    behind = answering(left="1", right="2", both="3")
    with Invoker(behind.url, ROUTE) as invoker:
        invoker.invoke(b"ab\xff")
    assert bodies(behind)["left"] == b"ab\xff"


def test_the_entry_gets_the_request_and_answers_for_the_workflow(answering):
    behind = answering(entry='{"b":  2}')
    with Invoker(behind.url, ENTRY) as invoker:
        answer = invoker.invoke(b"{}")
    assert (answer.output, answer.timelines) == ('{"b":  2}', ())
    assert "X-Chiron-Trace" not in behind.calls[0][2]


def test_a_traced_request_comes_with_its_timeline(answering):
    behind = answering(entry=traced("x  y", "entry"))
    with Invoker(behind.url, ENTRY, trace_key="key") as invoker:
        answer = invoker.invoke(b"{}", trace=True)
    assert answer.output == "x  y"
    timeline = answer.timeline
    assert [(span.kind, span.task) for span in timeline.spans] == [("task", "entry")]
    assert timeline.latency_ms == answer.latency_ms
    # What the wrap does is in the middle of what the client waits for.
    before_ms, after_ms = timeline.arrived_ms, answer.latency_ms - timeline.spans[0].end_ms
    assert before_ms == pytest.approx(after_ms)
    assert behind.calls[0][2]["X-Chiron-Trace"] == "key"


def test_a_traced_request_of_several_calls_has_their_ways_too(answering):
    behind = answering(**{name: traced("1", name) for name in ("left", "right", "both")})
    with Invoker(behind.url, ROUTE, trace_key="key") as invoker:
        timeline = invoker.invoke(b"{}", trace=True).timeline
    by_kind = {kind: timeline.of_kind(kind) for kind in ("task", "transfer")}
    tasks = {span.task: span for span in by_kind["task"]}
    ways = {span.wrap: span for span in by_kind["transfer"]}
    assert set(tasks) == set(ways) == {"left", "right", "both"}
    for name, task in tasks.items():
        assert 0 <= ways[name].start_ms <= ways[name].end_ms <= task.start_ms
        assert task.end_ms <= timeline.latency_ms
    assert ways["both"].start_ms >= max(tasks["left"].end_ms, tasks["right"].end_ms)


@pytest.mark.parametrize("output", ["plain", "7", "[1]", '{"output": 1}'])
def test_a_wrap_that_knows_another_key_does_not_trace(answering, output):
    behind = answering(entry=output)
    with Invoker(behind.url, ENTRY) as invoker, pytest.raises(ChironError) as failed:
        invoker.invoke(b"{}", trace=True)
    assert (failed.value.code, failed.value.functions) == ("not-traced", ("entry",))


@pytest.mark.parametrize(
    ("status", "body", "code", "function", "message", "told"),
    [
        (500, b'{"code":"raised","message":"no","function":"side"}', "raised", "side", "no", 500),
        (500, b'{"code":"raised","message":"a\\n  b"}', "raised", "w", "a b", 500),
        (504, b'{"code":"timeout","message":"late","function":null}', "timeout", "w", "late", 504),
        (502, b"  bad\ngateway ", "function-failed", "w", "status 502: bad gateway", 502),
        (404, b"no such\xff", "function-failed", "w", "status 404: no such\ufffd", 502),
        (500, b'["code"]', "function-failed", "w", 'status 500: ["code"]', 500),
        (503, b"", "function-failed", "w", "status 503: no body", 503),
        (500, b"x" * 5000, "function-failed", "w", f"status 500: {'x' * 288}", 500),
    ],
)
def test_an_error_body_becomes_the_error_it_tells_of(
    status, body, code, function, message, told, behind
):
    behind.functions["w"] = lambda _: (status, body)
    route = StagedRoute([[TaskCall(Task("w", "w", None))]], "w")
    with Invoker(behind.url, route) as invoker, pytest.raises(ChironError) as failed:
        invoker.invoke(b"{}")
    assert failed.value.code == code
    assert failed.value.functions == (function,)
    assert failed.value.message == f"function {function} failed: {message}"
    assert failed.value.status == told


def test_a_function_that_does_not_answer_is_named(behind):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Caller(url, timeout_s=0.05) as caller, pytest.raises(ChironError) as late:
            caller.call("side", b"")
    assert (late.value.code, late.value.functions, late.value.status) == ("timeout", ("side",), 504)


def test_a_gateway_that_is_not_there_is_named(free_port):
    url = f"http://127.0.0.1:{free_port}"
    with Caller(url) as caller, pytest.raises(ChironError, match=url) as absent:
        caller.call("side", b"")
    assert (absent.value.code, absent.value.status) == ("no-gateway", 502)


def test_a_functions_name_cannot_leave_its_place_in_the_url(behind):
    behind.functions["..%2Fsystem%3Fx"] = lambda _: (200, b"kept")
    with Caller(behind.url) as caller:
        assert caller.call("../system?x", b"").body == b"kept"


def deploy(fake, small, plan) -> None:
    for index, wrap in enumerate(plan.wraps):
        annotations = annotate(plan, index, small.workflow) | {KEY_ANNOTATION: "the-key"}
        variables = {"exec_timeout": "90s"}
        fake.deployed[wrap.name] = FunctionStatus(
            name=wrap.name, annotations=annotations, env_vars=variables
        )


def test_a_deployed_workflow_is_found_by_its_annotations(fake, behind, small, plan_of):
    fake.url = behind.url
    fake.add("other", workflow="other", planner="pgp", role="entry")
    fake.add("plain")
    plan = plan_of(small.workflow)
    deploy(fake, small, plan)
    behind.functions[plan.wraps[0].name] = lambda body: (200, body)
    with find_invoker(fake, "small") as invoker:
        assert invoker.invoke(b"hello").output == "hello"
        invoker.invoke(traced("hello", "main").encode(), trace=True)
    assert behind.calls[-1][2]["X-Chiron-Trace"] == "the-key"


def test_one_to_one_is_found_and_run_by_the_client(fake, behind, small, plan_of):
    fake.url = behind.url
    plan = plan_of(small.workflow, "one-to-one")
    deploy(fake, small, plan)
    for wrap in plan.wraps:
        behind.functions[wrap.name] = lambda body: (200, b"(" + body + b")")
    with find_invoker(fake, "small") as invoker:
        assert invoker.invoke(b"x").output == '(["(((x)))","(((x)))"])'
    stages = [read_flow(fake.deployed[name].annotations).stage for name, _, _ in behind.calls]
    assert stages == [0, 1, 1, 2, 2, 3]


def test_a_workflow_that_is_not_deployed_is_an_error(fake, small, plan_of):
    deploy(fake, small, plan_of(small.workflow))
    for workflow, planner in (("finra", None), ("small", "pgp")):
        with pytest.raises(ChironError) as absent:
            find_invoker(fake, workflow, planner)
        assert (absent.value.code, absent.value.status) == ("not-deployed", 404)
        assert str(absent.value).endswith("chiron deploy does that; deployed: small")


def test_wraps_without_an_entry_are_no_deployment_yet(fake):
    fake.add("small-wrap2", workflow="small", planner="pgp", role="wrap")
    fake.add("small-wrap1-v2", workflow="small", planner="pgp", role="candidate")
    with pytest.raises(ChironError) as absent:
        find_invoker(fake, "small")
    assert absent.value.code == "not-deployed"
    assert str(absent.value).endswith("deployed: none")


def test_which_of_several_planners_has_to_be_said(fake, small, plan_of):
    for planner in ("sand", "one-to-one"):
        deploy(fake, small, plan_of(small.workflow, planner))
    with pytest.raises(ChironError, match="one-to-one, sand") as unclear:
        find_invoker(fake, "small")
    assert unclear.value.code == "ambiguous"
    with find_invoker(fake, "small", "sand") as invoker:
        assert [len(stage) for stage in invoker.route.stages] == [1]
    with find_invoker(fake, "small", "one-to-one") as invoker:
        assert [len(stage) for stage in invoker.route.stages] == [1, 2, 2, 1]
