"""The client, the closed loop and the open loop, against a server that is known."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from itertools import repeat
from typing import TypeVar

import pytest
from aiohttp import web

from chiron.deployment.measure import Check, CheckedPayload, weighted_cycle
from chiron.deployment.route import Route, StagedRoute, TaskCall, state_machine_route
from chiron.evaluation.measurements.client import FEWEST, Client, RequestError, client_of
from chiron.evaluation.measurements.load import MOST_UNDER_WAY, closed_loop, open_loop
from chiron.workflow.asl import parse_states
from chiron.workflow.errors import ChironError
from chiron.workflow.model import Task
from chiron.workflow.payloads import Payload

Result = TypeVar("Result")
Handler = Callable[[web.Request], Awaitable[web.Response]]
ONE = StagedRoute(((TaskCall(Task("f", "f", None)),),), "f")


def expecting(answer: str) -> Check:
    """What refuses any other answer."""

    def check(output: str) -> None:
        if output != answer:
            raise ChironError("wrong-output", f"{output} is not {answer}")

    return check


def asking(answer: str, request: bytes = b"request") -> Iterator[CheckedPayload]:
    """The same request for ever, to which there is this answer."""
    return repeat((Payload("payload.json", request), expecting(answer)))


def against(
    handler: Handler, use: Callable[[Client], Awaitable[Result]], route: Route = ONE
) -> Result:
    """What `use` does with a client of a server that answers by `handler`; it expects ``yes``."""

    async def run() -> Result:
        app = web.Application()
        app.router.add_post("/function/{name}", handler)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        try:
            async with client_of(f"http://127.0.0.1:{port}", route, asking("yes")) as client:
                return await use(client)
        finally:
            await runner.cleanup()

    return asyncio.run(run())


async def yes(_: web.Request) -> web.Response:
    await asyncio.sleep(0.01)
    return web.Response(text="yes")


async def refuse(_: web.Request) -> web.Response:
    return web.Response(status=429, text="full")


async def echo(request: web.Request) -> web.Response:
    return web.Response(text=f"{request.match_info['name']}({await request.text()})")


def test_a_closed_loop_goes_on_until_there_are_enough_requests_for_a_figure():
    found = against(yes, lambda client: closed_loop(client, 2, 0.1, 60.0))
    assert found.counted == FEWEST
    assert not found.too_few
    assert 0 < found.per_s < 2 / 0.009


def test_a_closed_loop_of_failures_has_no_throughput_and_says_why():
    found = against(refuse, lambda client: closed_loop(client, 2, 0.2, 0.2))
    assert (found.per_s, found.p50_ms) == (0.0, None)
    assert found.errors > 0
    assert found.error == "function f failed: status 429: full"


def test_an_open_loop_sends_what_is_due():
    found = against(yes, lambda client: open_loop(client, 50, 0.4))
    assert (found.arrived, found.dropped, found.errors) == (20, 0, 0)
    assert len(found.latencies_ms) == 20
    assert min(found.latencies_ms) >= 9


def test_a_latency_counts_from_when_the_request_was_due():
    async def stall(client: Client):
        task = asyncio.create_task(open_loop(client, 100, 0.5))
        await asyncio.sleep(0.1)
        stalled = asyncio.get_running_loop().time() + 0.2
        while asyncio.get_running_loop().time() < stalled:
            pass  # the client itself hangs: what is due meanwhile is sent late
        return await task

    found = against(yes, stall)
    assert len(found.latencies_ms) == 50
    assert sum(ms > 50 for ms in found.latencies_ms) >= 10


def test_an_open_loop_drops_what_is_too_much():
    async def never(_: web.Request) -> web.Response:
        await asyncio.sleep(2)
        return web.Response(text="yes")

    found = against(never, lambda client: open_loop(client, 1000, 0.2))
    assert (found.arrived, found.dropped) == (200, 200 - MOST_UNDER_WAY)
    assert len(found.latencies_ms) == MOST_UNDER_WAY


def test_a_wrong_answer_fails():
    async def wrong(_: web.Request) -> web.Response:
        return web.Response(text="no")

    async def request(client: Client) -> str:
        with pytest.raises(RequestError) as error:
            await client.request()
        return str(error.value)

    assert against(wrong, request) == "wrong answer"


def test_payloads_have_turns_by_their_weights():
    """Each answer is held against what is expected of its own payload."""

    async def twice(request: web.Request) -> web.Response:
        return web.Response(text=(await request.text()) * 2)

    async def request(client: Client) -> list[bytes]:
        sent = list[bytes]()

        def noted() -> Iterator[CheckedPayload]:
            often = Payload("often", b"a", weight=2.0), expecting("aa")
            for payload, check in weighted_cycle(
                [often, (Payload("seldom", b"b"), expecting("bb"))]
            ):
                sent.append(payload.content)
                yield payload, check

        requests = noted()
        for _ in range(6):
            await client._replace(requests=requests).request()
        return sent

    assert Counter(against(twice, request)) == {b"a": 4, b"b": 2}


def test_a_machine_is_followed_as_invoke_does():
    """``first`` for each item; one that fails is tried again, and a wait has its time."""
    failed = set[str]()

    async def sometimes(request: web.Request) -> web.Response:
        item = await request.text()
        if item == "2" and item not in failed:
            failed.add(item)
            return web.Response(status=500, text="not yet")
        return web.Response(text=f"{item}0")

    retry = {"ErrorEquals": ["States.TaskFailed"], "IntervalSeconds": 1}
    task = {"Type": "Task", "Resource": "first", "Retry": [retry], "End": True}
    items = {"StartAt": "One", "States": {"One": task}}
    states = {"All": {"Type": "Map", "ItemsPath": "$", "ItemProcessor": items, "End": True}}
    machine = parse_states({"StartAt": "All", "States": states}, "m").machine

    async def request(client: Client) -> None:
        await client._replace(requests=asking("[10,20,30]", b"[1,2,3]")).request()

    against(sometimes, request, state_machine_route("m", machine, {"One": "first"}))
    assert failed == {"2"}
