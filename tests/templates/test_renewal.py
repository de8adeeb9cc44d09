"""When a program that serves begins anew, by a clock that the test sets."""

from __future__ import annotations

import pytest
from wrap.core.renewal import Renewal


@pytest.mark.parametrize(
    ("looks", "is_due", "is_late"),
    [
        ([], False, False),
        ([(0.0, False)], False, False),
        ([(0.0, True)], True, False),
        ([(0.0, True), (5.0, True)], True, False),
        ([(0.0, True), (5.1, True)], True, True),
        ([(0.0, False), (5.1, True)], True, False),
        ([(0.0, True), (4.0, False), (9.1, False)], False, False),  # its threads have come back
        ([(0.0, True), (4.0, False), (5.0, True), (9.1, True)], True, False),
        ([(0.0, True), (4.0, False), (5.0, True), (10.1, True)], True, True),
    ],
)
def test_a_worn_program_begins_anew_and_waits_for_parts_of_requests_for_a_while(
    looks: list[tuple[float, bool]], is_due: bool, is_late: bool
) -> None:
    renewal, now = Renewal(drain_s=5.0), 0.0
    for now, is_worn in looks:
        renewal.look(now, is_worn)
    assert (renewal.is_due, renewal.is_late(now)) == (is_due, is_late)
