"""The replicas of what serves follow its load, and no request is lost by that."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chiron.adaptation.events import Event, Tell
from chiron.adaptation.replicas import Scaler
from chiron.adaptation.scaling import CALM
from chiron.adaptation.version import serving
from chiron.deployment import replicas as asking
from chiron.generator.annotations import NEEDED, ROLE
from chiron.generator.given import GIVEN, given
from chiron.openfaas.client import Gateway
from chiron.openfaas.objects import MAX_LABEL, MIN_LABEL, TARGET_LABEL, TYPE_LABEL, FunctionStatus
from chiron.openfaas.stack import StackFunction
from chiron.workflow.errors import ChironError

NAME = "pair-wrap1"


class Wrap:
    """A gateway with one wrap, whose replicas answer in turn."""

    def __init__(
        self,
        allows: int = 20,
        labels: dict[str, str] | None = None,
        annotations: dict[str, str] | None = None,
    ) -> None:
        self.replicas, self.allows, self.labels = 1, allows, labels or {}
        self.annotations = annotations or {}
        self.asked: list[int] = []
        self.answers = 0
        self.requests = 0.0
        self.pressed_s = 0.0
        self.answered = 0.0
        self.is_there = True

    def describe(self, name: str) -> FunctionStatus:
        fields = {"replicas": self.replicas, "available_replicas": self.replicas}
        told = {"labels": self.labels, "annotations": self.annotations}
        return FunctionStatus(name=name, **told, **fields)

    def scale(self, name: str, replicas: int) -> None:
        self.asked.append(replicas)
        self.replicas = min(self.allows, replicas)

    def get(self, name: str, path: str, timeout_s: float) -> Any:
        if not self.is_there:
            raise ChironError("timeout", "late")
        self.answers += 1
        metrics = {
            f'replica_info{{replica="{self.answers % self.replicas}"}}': 1,
            "requests_in_hand": self.requests / self.replicas,
            "requests_waiting": 0,
            "requests_at_once": 4,
            "pressure_seconds_total": self.pressed_s,
        }
        return SimpleNamespace(
            ok=path == "/metrics",
            text="".join(f"chiron_{key} {value}\n" for key, value in metrics.items())
            + f'http_requests_total{{method="post",code="200"}} {self.answered}\n',
        )


def scaler(wrap: Wrap, tell: Tell = lambda _: None, **others: Any) -> Scaler:
    function = FunctionStatus(name=NAME)
    return Scaler(cast(Gateway, wrap), lambda: [function], tell, **others)


@pytest.mark.parametrize("allows", [1, 5])
def test_a_gateway_that_does_not_allow_it_is_asked_once_and_that_is_told(allows: int) -> None:
    wrap = Wrap(allows=allows)
    wrap.replicas = allows
    events: list[Event] = []
    looking = scaler(wrap, events.append)
    for requests in (40.0, 60.0, 40.0, *[0.5] * (CALM - 5), 80.0):
        wrap.requests = requests
        looking.look()
    assert len(wrap.asked) == 1
    assert [event.kind for event in events] == ["scaled", "kept"]
    assert events[-1].figures["replicas"] == allows


def test_a_gateway_that_has_come_to_allow_it_is_asked_again() -> None:
    wrap = Wrap(allows=1)
    wrap.requests = 40.0
    looking = scaler(wrap)
    for _ in range(3):
        looking.look()
    wrap.allows, wrap.replicas = 20, 2
    looking.look()
    assert wrap.asked == [4, 8]


def test_what_was_deployed_again_is_scaled_again() -> None:
    wrap = Wrap()
    wrap.requests = 5.0
    looking = scaler(wrap)
    for _ in range(2):
        looking.look()
        looking.look()
        wrap.replicas = 1
    assert wrap.asked == [2, 2]


def test_every_replica_is_heard_and_a_label_is_the_end() -> None:
    wrap = Wrap(labels={"com.openfaas.scale.max": "3"})
    wrap.requests = 40.0
    looking = scaler(wrap)
    for _ in range(3):
        looking.look()
    assert wrap.asked == [3]
    wrap.answers = 0
    looking.look()
    assert wrap.answers == 3


PLANNED = {TYPE_LABEL: "rps", TARGET_LABEL: "20", MIN_LABEL: "2"}


@pytest.mark.parametrize("labels", [PLANNED, {MIN_LABEL: "2"}], ids=["Pro", "Community Edition"])
def test_a_rate_above_the_planned_one_is_met_ahead_of_any_queue(
    labels: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two replicas were planned for 40/s; 200/s need ten."""
    wrap = Wrap(labels=labels, annotations={GIVEN: given(StackFunction(labels=PLANNED))})
    wrap.replicas = 2
    events: list[Event] = []
    looking = scaler(wrap, events.append)
    for second in range(20):
        now = SimpleNamespace(monotonic=lambda second=second: float(second))
        monkeypatch.setattr(asking, "time", now)
        wrap.answered += 200 / wrap.replicas
        looking.look()
    assert (wrap.asked[0], wrap.asked[-1]) == (8, 10)
    assert wrap.asked == sorted(wrap.asked)
    assert "and the rate needs" in events[0].message


class Wraps:
    """A gateway with several wraps."""

    def __init__(self, **wraps: Wrap) -> None:
        self.wraps = wraps

    def describe(self, name: str) -> FunctionStatus:
        return self.wraps[name].describe(name)

    def scale(self, name: str, replicas: int) -> None:
        self.wraps[name].scale(name, replicas)

    def get(self, name: str, path: str, timeout_s: float) -> Any:
        return self.wraps[name].get(name, path, timeout_s)


def test_each_wrap_follows_the_rate_by_its_own_need_within_its_own_labels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At the planned 40/s two replicas of the entry are busy, and a fifth of one behind it."""
    rps = {TYPE_LABEL: "rps", TARGET_LABEL: "20", MIN_LABEL: "2"}
    place = Wraps(
        entry=Wrap(labels=rps, annotations={ROLE: "entry", NEEDED: "2"}),
        idle=Wrap(annotations={NEEDED: "0.2"}),
        busy=Wrap(annotations={NEEDED: "0.9"}),
        bounded=Wrap(labels={MAX_LABEL: "2"}, annotations={NEEDED: "0.9"}),
    )
    place.wraps["entry"].replicas = 2
    functions = [FunctionStatus(name=name) for name in place.wraps]
    looking = Scaler(cast(Gateway, place), lambda: functions, lambda _: None)
    for second in range(20):
        now = SimpleNamespace(monotonic=lambda second=second: float(second))
        monkeypatch.setattr(asking, "time", now)
        entry = place.wraps["entry"]
        entry.answered += 160 / entry.replicas
        looking.look()
    assert {name: wrap.replicas for name, wrap in place.wraps.items()} == {
        "entry": 8,
        "idle": 1,
        "busy": 4,
        "bounded": 2,
    }


def test_an_entry_gets_no_replicas_for_requests_that_wait_for_another_wrap() -> None:
    place = Wraps(entry=Wrap(annotations={ROLE: "entry"}), behind=Wrap(allows=1))
    place.wraps["entry"].requests, place.wraps["behind"].requests = 24.0, 4.0
    functions = [FunctionStatus(name=name) for name in place.wraps]
    looking = Scaler(cast(Gateway, place), lambda: functions, lambda _: None)
    for _ in range(5):
        looking.look()
    assert (place.wraps["entry"].asked, place.wraps["behind"].asked) == ([], [2])
    place.wraps["behind"].allows = 2
    place.wraps["behind"].replicas = 2
    looking.look()
    assert place.wraps["entry"].asked == [4]


class Starting(Wrap):
    """A wrap whose replicas answer only two looks after they were asked for.

    So many `clients` wait for an answer each; a replica takes their requests one at a time.
    """

    def __init__(self, clients: int) -> None:
        super().__init__()
        self.clients, self.at = clients, 0
        self.since = [-2]

    def scale(self, name: str, replicas: int) -> None:
        super().scale(name, replicas)
        self.since += [self.at] * (replicas - len(self.since))

    def get(self, name: str, path: str, timeout_s: float) -> Any:
        self.answers += 1
        number = self.answers % self.replicas
        ready = [each for each, since in enumerate(self.since) if self.at - since >= 2]
        if number not in ready:
            raise ChironError("timeout", "late")
        metrics = {f'replica_info{{replica="{number}"}}': 1, "requests_at_once": 1}
        metrics |= {"requests_in_hand": 1, "pressure_seconds_total": 0}
        metrics["requests_waiting"] = self.clients / len(ready) - 1
        text = "".join(f"chiron_{key} {value}\n" for key, value in metrics.items())
        return SimpleNamespace(ok=True, text=text)


@pytest.mark.parametrize(("clients", "asked"), [(1, []), (3, [3]), (10, [4, 10]), (16, [4, 16])])
def test_a_replica_that_is_starting_asks_for_no_more(clients: int, asked: list[int]) -> None:
    wrap = Starting(clients)
    looking = scaler(wrap)
    for wrap.at in range(20):
        looking.look()
    assert wrap.asked == asked


@pytest.mark.parametrize(("by_pressure", "asked"), [(True, [2]), (False, [])])
def test_pressure_counts_where_it_is_to(by_pressure: bool, asked: list[int]) -> None:
    wrap = Wrap()
    looking = scaler(wrap, by_pressure=by_pressure)
    looking.look()
    wrap.pressed_s += 100.0
    looking.look()
    assert wrap.asked == asked


def test_what_is_too_busy_to_answer_has_as_much_to_do_as_before() -> None:
    wrap = Wrap()
    wrap.requests = 14.0
    looking = scaler(wrap)
    looking.look()
    wrap.requests, wrap.is_there = 400.0, False
    for _ in range(2 * CALM):
        looking.look()
    assert (wrap.asked, wrap.replicas) == ([4, 5], 5)


def test_what_never_said_anything_stays_as_it_is() -> None:
    wrap = Wrap()
    wrap.requests, wrap.is_there = 40.0, False
    looking = scaler(wrap)
    looking.look()
    wrap.is_there, wrap.replicas = True, 0
    looking.look()
    assert (wrap.asked, wrap.answers) == ([], 0)


@pytest.mark.slow
def test_replicas_follow_the_load_and_nothing_is_lost(watcher, place, knob, load, one_client):
    watcher().run(once=True)

    def wraps() -> tuple[FunctionStatus, ...]:
        current = serving(place.gateway, "pair", "pgp")
        return current.wraps if current else ()

    looking = Scaler(place.gateway, wraps, place.events.append)
    knob.turn(0.2)
    with load:
        end = time.monotonic() + 60
        while place.gateway.describe(NAME).available_replicas < 2:
            assert time.monotonic() < end
            looking.look()
        load.await_each()
    with one_client:
        for _ in range(CALM):
            looking.look()
            one_client.await_each(1)
        assert {each.replicas for each in wraps()} == {1}
        one_client.await_each()
    assert {status for status, _ in load.answers | one_client.answers} == {200}
    assert {event.kind for event in place.events[-2:]} == {"scaled"}
