"""How the memory of a replica is divided; no process takes any."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from wrap.core import memory_shares as shares

from tests.rows import each_row

MIB = 1 << 20


@given(st.integers(0, 1 << 40), st.integers(1, 100))
def test_no_part_is_more_than_a_quarter_and_all_processes_keep_no_more_together(memory, processes):
    quarter = memory // 4
    assert shares.of_connections(memory) == shares.of_output(memory) == quarter
    assert shares.of_objects(memory) == quarter
    assert processes * shares.freed(memory, processes) <= quarter
    assert processes * shares.shared(memory, processes) <= quarter


def test_what_a_process_keeps_has_a_bound_however_much_memory_there_is() -> None:
    assert (shares.freed(1 << 40, 1), shares.shared(1 << 40, 1)) == (32 * MIB, 256 * MIB)


@each_row(
    ("taken", "sized_for", "size"),
    [(0, 0, 10 * MIB), (120 * MIB, 5 * MIB, 10 * MIB), (240 * MIB, 5 * MIB, 5 * MIB)],
)
def test_a_request_may_have_what_was_planned_and_a_share_of_what_is_free(taken, sized_for, size):
    assert shares.of_request(240 * MIB, taken, sized_for) == size
    assert shares.of_request(240 * MIB, 10 * taken, sized_for) == (sized_for if taken else size)


@each_row(
    ("wanted", "mib", "processes", "kept"),
    [
        (100, 1024, 1, 100),
        (1, 1024, 1, 64),
        (1000, 256, 1, 256),
        (1000, 256, 2, 128),
        (100, 8, 1, 64),
    ],
)
def test_as_many_threads_stay_as_a_wide_stage_takes_and_memory_has_room_for(
    wanted: int, mib: int, processes: int, kept: int
) -> None:
    assert shares.idle_threads(wanted, mib * MIB, processes) == kept
