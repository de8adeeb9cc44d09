"""Every case is timed with every engine."""

from __future__ import annotations

from evaluation import predictor_speed
from evaluation.predictor_speed import measure_speed, random_works


def test_every_case_is_timed_with_every_engine(monkeypatch):
    monkeypatch.setattr(predictor_speed, "CASES", ((2, 3),))
    monkeypatch.setattr(predictor_speed, "_BUDGET_S", 0.01)
    monkeypatch.setattr(predictor_speed, "_LOADS", 1)
    speeds = measure_speed()
    assert [(s.engine, s.threads, s.periods) for s in speeds.speeds] == [
        ("python", 2, 3), ("compiled", 2, 3),
    ]  # fmt: skip
    for speed in speeds.speeds:
        assert 0 < speed.low_us <= speed.median_us <= speed.high_us
        assert speed.samples >= 20
    assert speeds.load_ms > 0


def test_the_same_seed_makes_the_same_threads():
    assert random_works(2, 3, seed=1) == random_works(2, 3, seed=1)
    assert random_works(2, 3, seed=1) != random_works(2, 3, seed=2)
