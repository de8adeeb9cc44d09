"""Who stays of the connections that have proved nothing, and what is logged of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from wrap.core.unproven import UnauthenticatedCallers
from wrap.net.peer_server import Refusals

MOST, MOMENT_S, LONGEST_S = 3, 0.5, 10.0


@pytest.fixture
def crowd() -> Any:
    return UnauthenticatedCallers(MOST, MOMENT_S, LONGEST_S)


def test_the_oldest_gives_way_to_the_newest_unless_it_has_proved_itself(crowd: Any) -> None:
    gave_way = [crowd.add(number, now=float(number)) for number in range(6)]
    assert gave_way == [None, None, None, 0, 1, 2]
    crowd.remove(4)
    crowd.remove(4)
    assert crowd.add(6, now=6.0) is None
    assert crowd.all() == [3, 5, 6]


def test_each_stays_for_a_moment_whoever_wants_its_place(crowd: Any) -> None:
    for number in range(MOST):
        assert crowd.free_from() == 0.0
        crowd.add(number, now=7.0 + number)
    assert crowd.free_from() == 7.0 + MOMENT_S
    crowd.add(MOST, now=20.0)
    assert crowd.free_from() == 8.0 + MOMENT_S


def test_no_one_stays_for_long(crowd: Any) -> None:
    assert crowd.next_expiry() is None
    crowd.add("a", now=1.0)
    crowd.add("b", now=2.0)
    assert crowd.next_expiry() == 1.0 + LONGEST_S
    assert crowd.expired(now=10.9) == []
    assert crowd.expired(now=11.0) == ["a"]
    assert crowd.expired(now=12.0) == ["a", "b"]


class Times:
    """A clock, and what is to be done at its times."""

    def __init__(self) -> None:
        self.now = 0.0
        self.due: list[tuple[float, Callable[[], None]]] = []

    def call_at(self, when: float, action: Callable[[], None]) -> None:
        self.due.append((when, action))

    def pass_to(self, when: float) -> None:
        self.now = when
        due, self.due = self.due, []
        for at, action in due:
            if at <= when:
                action()
            else:
                self.due.append((at, action))


def test_refusals_are_logged_once_a_second_with_how_many_there_were(capsys: Any) -> None:
    times: Any = Times()
    refusals = Refusals(times, lambda: times.now)
    refusals.add(ValueError("a"))
    assert capsys.readouterr().out == "a direct connection was refused, the 1. so far: a\n"
    for _ in range(1000):
        refusals.add(ValueError("b"))
    refusals.add(ValueError("c"))
    assert capsys.readouterr().out == ""
    times.pass_to(1.0)
    expected = "1001 direct connections were refused, the 1002. so far of the last: c\n"
    assert capsys.readouterr().out == expected
    times.pass_to(2.0)
    times.pass_to(3.0)
    assert capsys.readouterr().out == ""
    assert times.due == []
    refusals.add(ValueError("d"))
    assert capsys.readouterr().out == "a direct connection was refused, the 1003. so far: d\n"
    assert refusals.count.lines()[-1] == "chiron_direct_refusals_total 1003"
