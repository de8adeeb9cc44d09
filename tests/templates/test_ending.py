"""What a replica still takes after it was told to end, when it may go, and who is asked instead."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from wrap.cluster.participant import Participant
from wrap.cluster.peers import BEGIN
from wrap.core.ending import accepts_data, accepts_execution, may_exit, replica_of
from wrap.net import framing
from wrap.net.messages import Ident, Request
from wrap.net.peer_connection import Message, Received

from tests.rows import each_row


@each_row(
    ("urged", "is_expected", "takes"),
    [(False, False, False), (True, False, True), (False, True, True), (True, True, True)],
)
def test_one_that_is_ending_begins_what_no_other_one_can(urged, is_expected, takes):
    """It keeps objects of what it takes part in: who gave them may have ended."""
    assert accepts_execution(True, urged, is_expected) == takes
    assert accepts_data(True, is_expected) == accepts_execution(True, False, is_expected)
    assert accepts_execution(False, urged, is_expected) and accepts_data(False, is_expected)


@each_row(
    ("since_s", "in_hand", "goes"),
    [
        (0.0, False, False),
        (1.4, False, False),
        (1.5, False, True),
        (1.5, True, False),
        (11.4, True, False),
        (11.5, True, True),
    ],
)
def test_it_goes_when_others_have_heard_and_nothing_is_in_hand_or_all_is_late(
    since_s: float, in_hand: bool, goes: bool
) -> None:
    assert may_exit(since_s, linger_s=1.5, in_hand=in_hand, patience_s=10.0) == goes


def test_executions_are_shared_by_those_that_stay() -> None:
    known = ("a", "b", "c", "d")
    assert [replica_of(each, known, ()) for each in range(5)] == ["a", "b", "c", "d", "a"]
    assert [replica_of(each, known, ("b", "d")) for each in range(4)] == ["a", "c", "a", "c"]


def test_where_all_are_ending_one_of_these_is_asked() -> None:
    assert [replica_of(each, ("a", "b"), ("a", "b")) for each in range(3)] == ["a", "b", "a"]
    assert replica_of(0, (), ("a",)) is None


class Connection:
    """What a participant answers."""

    def __init__(self) -> None:
        self.sent: list[Message] = []

    def send(self, message: Message) -> None:
        self.sent.append(message)


@pytest.fixture
def later() -> list[Callable[[], None]]:
    """What the loop is asked to call later."""
    return []


@pytest.fixture
def participant(later: list[Callable[[], None]]) -> Participant:
    loop = SimpleNamespace(call_at=lambda _when, act: later.append(act))
    protocol = SimpleNamespace(busy=False, expects=lambda _: False)
    runtime = SimpleNamespace(broker=None, loop=loop)
    return Participant(runtime, protocol)


def test_one_that_refuses_stays_until_it_can_be_urged(participant, later) -> None:
    """Who finds no other replica comes back: until then this one must not have gone."""
    participant.ending = True
    frames = framing.split(b"".join(framing.pieces(Request(Ident(), [1], {}).frames())))
    connection = Connection()
    participant.handle(connection, Received(BEGIN, [10.0, "home", {}, False, False, []], frames))
    (refusal,) = connection.sent
    assert refusal.fields == [503]
    assert participant.busy
    for act in later:
        act()
    assert not participant.busy
