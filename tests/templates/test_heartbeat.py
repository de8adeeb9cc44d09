"""When a server counts as dead, and how it is ended; nothing waits, and no process is started."""

from __future__ import annotations

from wrap.core.heartbeat import End, Heartbeat, MissedBeats


def test_a_server_beats_once_in_the_time_of_a_beat_while_its_loop_turns() -> None:
    heartbeat = Heartbeat(1.0)
    beats = [heartbeat.turned(now / 4, turns=now, runs=True) for now in range(12)]
    assert beats == [True, False, False, False] * 3


def test_it_stops_beating_while_the_loop_stands_still() -> None:
    heartbeat = Heartbeat(1.0)
    beats = [heartbeat.turned(float(now), turns=7, runs=True) for now in range(6)]
    assert beats == [True, True, True, False, False, False]
    assert heartbeat.is_blocked
    assert heartbeat.turned(6.0, turns=8, runs=True)
    assert not heartbeat.is_blocked


def test_a_loop_that_has_not_begun_need_not_turn() -> None:
    heartbeat = Heartbeat(1.0)
    assert all(heartbeat.turned(float(now), turns=0, runs=False) for now in range(10))


def test_a_fork_server_is_started_again_once_a_minute() -> None:
    heartbeat = Heartbeat(1.0)
    renewals = [now for now in range(100, 300) if heartbeat.may_restart_fork_server(float(now))]
    assert renewals == [100, 160, 220, 280]


def test_a_server_that_misses_too_many_beats_is_told_to_end_and_then_killed() -> None:
    beats = MissedBeats()
    beats.beat(3)
    assert [beats.miss() for _ in range(10)] == [
        *(None, None, End.TELL),
        *(None, None, None, None, End.KILL),
        *(None, None),
    ]


def test_each_beat_begins_the_count_anew() -> None:
    beats = MissedBeats()
    for _ in range(5):
        beats.beat(3)
        assert [beats.miss(), beats.miss()] == [None, None]


def test_a_server_that_awaits_no_end_may_miss_any_number() -> None:
    beats = MissedBeats()
    assert not any(beats.miss() for _ in range(100))
    beats.beat(2)
    beats.beat(0)
    assert not any(beats.miss() for _ in range(100))
