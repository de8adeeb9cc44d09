"""An alarm has one timer, for the earliest of its times."""

from __future__ import annotations

import math
from collections.abc import Callable

from wrap.event_loop.alarm import Alarm
from wrap.event_loop.loop import Timer


class Times:
    """A loop in which no time passes."""

    def __init__(self) -> None:
        self._timers: list[tuple[float, Timer]] = []

    def call_at(self, when: float, action: Callable[[], None]) -> Timer:
        timer = Timer(action, lambda: None)
        self._timers.append((when, timer))
        return timer

    @property
    def due(self) -> list[float]:
        """The times of all timers that were not cancelled."""
        return [when for when, timer in self._timers if timer.action is not None]


def test_an_alarm_is_set_for_the_earliest_of_its_times_alone_and_anew_when_it_was_cleared() -> None:
    loop = Times()
    alarm = Alarm(loop, lambda: None)
    alarm.clear()
    alarm.set_for(math.inf)
    assert loop.due == []
    for when, earliest in ((5.0, 5.0), (7.0, 5.0), (5.0, 5.0), (3.0, 3.0), (math.inf, 3.0)):
        alarm.set_for(when)
        assert loop.due == [earliest]
    alarm.clear()
    assert loop.due == []
    alarm.set_for(7.0)
    assert loop.due == [7.0]
