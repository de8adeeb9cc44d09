"""When a server counts as dead, and how it is ended; nothing waits, and no process is started."""

from __future__ import annotations

from wrap.core.heartbeat import End, Heartbeat, MissedBeats


def test_a_server_beats_once_in_the_time_of_a_beat_while_its_loop_turns() -> None:
    heartbeat = Heartbeat(1.0)
    beats = [heartbeat.turned(now / 4, turns=now, runs=True) for now in range(12)]
    assert beats == [True, False, False, False] * 3
    beats = [heartbeat.turned(3.0 + now, turns=20, runs=True) for now in range(6)]
    assert beats == [True, True, True, False, False, False]
    assert heartbeat.is_blocked
    assert heartbeat.turned(9.0, turns=21, runs=True)
    assert not heartbeat.is_blocked
    # A loop that has not begun need not turn.
    heartbeat = Heartbeat(1.0)
    assert all(heartbeat.turned(float(now), turns=0, runs=False) for now in range(10))


def test_a_fork_server_is_started_again_once_a_minute() -> None:
    heartbeat = Heartbeat(1.0)
    renewals = [now for now in range(100, 300) if heartbeat.may_restart_fork_server(float(now))]
    assert renewals == [100, 160, 220, 280]


def test_a_server_that_misses_too_many_beats_is_told_to_end_and_then_killed() -> None:
    """Each beat begins the count anew; one that awaits no end may miss any number."""
    beats = MissedBeats()
    assert not any(beats.miss() for _ in range(100))
    for _ in range(5):
        beats.beat(3)
        assert [beats.miss(), beats.miss()] == [None, None]
    beats.beat(3)
    assert [beats.miss() for _ in range(10)] == [
        *(None, None, End.TELL),
        *(None, None, None, None, End.KILL),
        *(None, None),
    ]
    beats.beat(0)
    assert not any(beats.miss() for _ in range(100))
