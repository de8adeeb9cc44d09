"""What is computed of two changed processes is what all processes together would give."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chiron.scheduler.slots import pair_latency

times = st.floats(0, 100)


@given(st.lists(times, max_size=8), st.data(), times, times)
def test_two_processes_among_others_end_as_if_all_were_sorted_anew(others, data, one, two):
    size = len(others) + 2
    offsets = data.draw(st.lists(times, min_size=size, max_size=size))
    anew = zip(sorted([*others, one, two], reverse=True), sorted(offsets), strict=True)
    slower, faster = max(one, two), min(one, two)
    assert pair_latency(others, offsets)(slower, faster) == max(map(sum, anew))
