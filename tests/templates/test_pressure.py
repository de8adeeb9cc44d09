"""Tasks are held back while what those before gave leaves more slowly than it is made."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wrap.core import backpressure
from wrap.dispatch.backpressure import Pressure
from wrap.event_loop.loop import Timer

from tests.templates.network import Stalls

SIZE = 1_000_000
NAMES = ("test-home", "test-far")


class Times:
    """Virtual time."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def call_at(self, when: float, action: Callable[[], None]) -> Timer:
        heapq.heappush(self._due, (when, next(self._numbers), action))
        return Timer(action, lambda: None)

    def run(self, until: float) -> None:
        while self._due and self._due[0][0] <= until:
            when, _, action = heapq.heappop(self._due)
            self.now = max(self.now, when)
            action()
        self.now = until


class Replica:
    """Tasks that each give `SIZE` bytes, which leave one after another."""

    def __init__(self, computing_s: float, sending_s: float) -> None:
        self.times = Times()
        self.pressure = Pressure(self.times, lambda: self.times.now)
        self._computing_s, self._sending_s = computing_s, sending_s
        self._free = 0.0
        self.unsent = self.most_unsent = self.sent = 0
        self.begun: list[int] = []
        self.over: set[int] = set()

    def ask(self, number: int = 0) -> None:
        def begin() -> None:
            self.begun.append(number)
            self.times.call_at(self.times.now + self._computing_s, self._give)

        if self.pressure.may_begin(1, begin, lambda: number in self.over):
            begin()

    def _give(self) -> None:
        self.pressure.record_output(SIZE, self._computing_s)
        self.pressure.record_sending("far", SIZE)
        self.unsent += 1
        self.most_unsent = max(self.most_unsent, self.unsent)
        self._free = max(self._free, self.times.now) + self._sending_s
        self.times.call_at(self._free, self._send)

    def _send(self) -> None:
        self.unsent -= 1
        self.sent += 1
        self.pressure.record_sent("far", SIZE)

    def warm_up(self) -> None:
        for second in range(1, 6):
            self.ask()
            self.times.run(float(second))


@pytest.fixture(name="slow")
def _slow() -> Replica:
    replica = Replica(computing_s=0.01, sending_s=0.1)
    replica.warm_up()
    return replica


def test_what_leaves_sooner_than_it_is_made_holds_nothing_back() -> None:
    replica = Replica(computing_s=0.1, sending_s=0.01)
    replica.warm_up()
    for number in range(50):
        replica.times.call_at(6 + number / 20, replica.ask)
    replica.times.run(20.0)
    assert (len(replica.begun), replica.sent) == (55, 55)
    assert replica.pressure.held_s == 0


def test_no_more_is_made_than_leaves_and_nothing_is_lost(slow: Replica) -> None:
    slow.most_unsent = 0
    for number in range(50):
        slow.ask(number)
    slow.times.run(5.0 + 50 * 0.1 + 0.05)
    assert slow.sent >= 54, "it has always had something to send"
    slow.times.run(5.0 + 50 * 0.1 + 0.5)
    assert slow.begun[5:] == list(range(50))
    assert slow.sent == 55
    assert slow.most_unsent <= 2
    assert slow.pressure.rules.leaving == slow.pressure.rules.held == 0


def test_the_seconds_in_which_tasks_wait_are_counted(slow: Replica) -> None:
    for number in range(11):
        slow.ask(number)
    assert slow.pressure.rules.held > 0
    slow.times.run(100.0)
    # The last but one begins when there is something to send for no longer than it runs.
    assert slow.pressure.held_s == pytest.approx(11 * 0.1, abs=0.25)


def test_those_that_nobody_waits_for_any_more_do_not_begin(slow: Replica) -> None:
    for number in range(10):
        slow.ask(number)
    slow.over = set(range(3, 9))
    slow.times.run(100.0)
    assert slow.begun[5:] == [0, 1, 2, 9]


def test_what_is_stuck_elsewhere_is_waited_for_no_longer_than_it_could_take(slow: Replica) -> None:
    slow.pressure.record_sending("hung", 10 * SIZE)
    for number in range(5):
        slow.ask(number)
    slow.times.run(5.5)
    assert slow.begun[5:] == []
    slow.times.run(10.0)
    assert slow.begun[5:] == list(range(5))
    slow.pressure.record_sending("hung", 10 * SIZE)
    for number in range(5, 10):
        slow.ask(number)
    slow.times.run(16.0)
    assert slow.begun[5:] == list(range(10))


@given(st.lists(st.tuples(st.sampled_from(["ask", "give", "arrive", "wait"]), st.integers(1, 4))))
def test_held_tasks_begin_in_their_order_and_all_of_them(steps: list[tuple[str, int]]) -> None:
    rules, now, asked = backpressure.Pressure[int](), 0.0, 0
    held, begun, leaving = list[int](), list[int](), list[int]()

    def begin_held() -> None:
        while (following := rules.next(now)) is not None:
            assert following == (held.pop(0), 1)
            begun.append(following[0])
            rules.begin(now, 1)

    for step, count in steps:
        now += 0.01 * count
        if step == "ask":
            (begun if rules.may_begin(now, 1, asked) else held).append(asked)
            asked += 1
        elif step == "give":
            rules.record_output(SIZE * count, 0.01)
            rules.record_sending(now, "far", SIZE * count)
            leaving.append(SIZE * count)
        elif step == "arrive" and leaving:
            rules.record_sent(now, "far", leaving.pop(0))
        begin_held()
        assert (rules.held, rules.leaving) == (len(held), sum(leaving))
        assert (rules.next_check_s(now) is None) == (not held)
    while leaving:
        now += 0.01
        rules.record_sent(now, "far", leaving.pop(0))
        begin_held()
    for _ in range(asked):
        now += 100.0  # what has begun and gives nothing is not waited for
        begin_held()
    assert (held, begun) == ([], list(range(asked)))
    assert rules.held_s(now) == rules.held_s(now + 1)


def metrics(server: Any) -> dict[str, float]:
    text = server.request("GET", "/metrics").text
    pairs = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name.partition("{")[0]: float(value) for name, value in pairs}


def test_a_wrap_holds_tasks_back_while_its_link_is_slow_and_all_are_answered(
    wrap_image, start, gateway, tmp_path, in_background, eventually
):
    """Two wraps, of which the first gives the second a megabyte."""
    (tmp_path / "chiron-direct").write_text("a secret")
    home, far = NAMES
    sources = {"make": f"def handle(req):\n    return 'x' * {SIZE}\n"}
    sources["take"] = "def handle(req):\n    return str(len(req))\n"
    servers = {}
    for task, name, other in ((0, home, far), (1, far, home)):
        own, its = list(sources)[:: 1 - 2 * task]
        image = wrap_image(
            {own: sources[own]},
            tasks={task: own},
            name=name,
            inputs={0: None, 1: 0},
            remotes={other: {1 - task: its}},
            entry={"output": 1} if task == 0 else None,
        )
        settings = {"secrets_dir": str(tmp_path), "chiron_trace_key": "key"}
        settings |= {"gateway_url": gateway.url, "WAITRESS_THREADS": "16"}
        servers[name] = start(image, **settings)
        gateway.ports[name] = servers[name].port
    home, far = servers.values()
    link = Stalls(int(far.request("GET", "/_/address").text.split()[1]), bytes_per_s=5e6)
    gateway.addresses[NAMES[1]] = f"127.0.0.1 {link.port}"
    for _ in range(3):
        assert home.request(body="x").text == str(SIZE)
    asked = [in_background(home.request, body="x") for _ in range(12)]
    assert eventually(lambda: metrics(home)["chiron_tasks_held_back"] > 0)
    assert metrics(home)["chiron_leaving_bytes"] < 8 * SIZE
    assert {each.result().text for each in asked} == {str(SIZE)}
    # That the last object is there is told by another message than the answer.
    assert eventually(lambda: metrics(home)["chiron_leaving_bytes"] == 0)
    after = metrics(home)
    assert after["chiron_pressure_seconds_total"] > 0.1
    assert after["chiron_tasks_held_back"] == 0
    assert metrics(far)["chiron_pressure_seconds_total"] == 0
    link.close()


def test_a_busy_wrap_says_what_it_has_to_do(wrap_image, start, in_background, tmp_path, eventually):
    gate = tmp_path / "gate"
    waits = f"""
        import pathlib, time

        def handle(req):
            while not pathlib.Path({str(gate)!r}).exists():
                time.sleep(0.01)
            return req
    """
    settings = {"WAITRESS_THREADS": "3", "pool_concurrency": "2"}
    image = wrap_image({"f": waits}, [[], [0]], mechanism="pool", entry={"output": 0})
    server = start(image, **settings)
    asked = [in_background(server.request, body="x") for _ in range(5)]
    names = [f"chiron_requests_{name}" for name in ("in_hand", "waiting", "at_once")]
    # Two have a worker, one waits for one, two wait for their turn.
    assert eventually(lambda: [metrics(server)[name] for name in names] == [2, 3, 2])
    gate.touch()
    assert {each.result().text for each in asked} == {"x"}
    assert [metrics(server)[name] for name in names] == [0, 0, 2]
