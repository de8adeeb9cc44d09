"""What becomes of objects that come before an execution begins here, while it runs, and after."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wrap.core.executions import DistributedExecutions

STEPS = st.sampled_from(["begin", "end", "fail", "deliver", "forget", "begin_again"])


@given(st.lists(st.tuples(STEPS, st.integers(0, 2))))
def test_an_execution_gets_all_that_came_for_it_once_and_in_order(steps):
    """Each of the steps of the messages may come at any time, and again."""
    executions = DistributedExecutions[object, int]()
    running, kept, ended = dict[int, object](), dict[int, list[int]](), dict[int, bool]()
    for count, (step, number) in enumerate(steps):
        assert executions.get(number) is running.get(number)
        assert executions.has_ended(number) == (number in ended)
        expected = number in running or number in kept or ended.get(number, False)
        assert executions.expects(number) == expected
        match step:
            case "begin":
                running[number] = object()
                ended.pop(number, None)
                assert executions.begin(number, running[number]) == kept.pop(number, [])
            case "end" | "fail" if number in running:
                executions.end(number, object(), True)  # the former of this number: no matter
                executions.end(number, running.pop(number), step == "end")
                ended[number] = step == "end"
            case "deliver" if number not in running:
                is_kept = ended.get(number, True)
                seconds = executions.keep(number, count)
                first = is_kept and number not in kept
                assert seconds == ((5.0 if number in ended else 30.0) if first else None)
                if is_kept:
                    kept.setdefault(number, []).append(count)
            case "forget":
                executions.forget(number)
                kept.pop(number, None)
            case "begin_again":
                assert executions.begin_again(number) is running.pop(number, None)
                ended.pop(number, None)
        assert executions.in_hand == bool(running or kept)


def test_of_many_that_have_ended_the_latest_are_remembered() -> None:
    executions = DistributedExecutions[str, None]()
    for number in range(10_001):
        executions.begin(number, "it")
        executions.end(number, "it", True)
    assert not executions.has_ended(0)
    assert executions.has_ended(1) and executions.has_ended(10_000)


@pytest.mark.parametrize("complete", [False, True])
def test_what_comes_for_tasks_that_will_run_again_waits_for_them(complete: bool) -> None:
    """Of two messages the one that has them begin again may be the later one."""
    executions = DistributedExecutions[str, str]()
    executions.begin(1, "it")
    executions.end(1, "it", complete)
    executions.keep(1, "object")
    assert executions.begin(1, "again") == ["object"] * complete
