"""Durations carry their unit; without one they are refused, never guessed."""

from __future__ import annotations

import pytest

from chiron.workflow.units import parse_duration_ms
from tests.rows import each_row


@each_row(
    ("text", "milliseconds"),
    [
        ("200ms", 200.0),
        ("1.5s", 1500.0),
        ("800us", 0.8),
        ("2m", 120_000.0),
        (" 10 ms ", 10.0),
        ("+.5s", 500.0),
        ("1e3ms", 1000.0),
        ("3.ms", 3.0),
    ],
)
def test_a_number_and_a_unit_are_milliseconds(text, milliseconds):
    assert parse_duration_ms(text) == pytest.approx(milliseconds, rel=1e-12)


@each_row(
    "text",
    ["200", "", "ms", "2h", "2S", "200 m s", "1,5s", "0x10ms", "nanms", "infs", "٣ms", "1µs"],
)
def test_what_has_no_number_or_no_known_unit_is_told_the_units(refused, text):
    error = refused(parse_duration_ms, text, "SLO")
    assert error.code == "bad-duration"
    assert "us, ms, s, m" in error.message
    assert error.message.startswith("SLO ")


@each_row("text", ["0ms", "-1s", "-0s", "1e400s", "1e-400ms", "1e300s", "36000m"])
def test_what_is_not_greater_than_0_or_longer_than_a_socket_waits_is_refused(refused, text):
    assert refused(parse_duration_ms, text).code == "bad-duration"


def test_a_huge_text_stays_out_of_the_message(refused):
    assert len(refused(parse_duration_ms, "9" * 100_000).message) < 200
