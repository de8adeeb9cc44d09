"""Equations (2)-(4), each with numbers that one can add up by hand."""

from __future__ import annotations

import pytest

from chiron.predictor.equations import call_computing_ms, call_ms
from chiron.predictor.mechanisms import MECHANISMS, mechanism_of
from chiron.workflow.errors import ChironError

FORK, POOL = MECHANISMS["fork"], MECHANISMS["pool"]


def test_a_mechanism_that_there_is_not_is_refused_by_name():
    with pytest.raises(ChironError, match="there is no mechanism 'magic': plan with fork or pool"):
        mechanism_of("magic")


def test_equation_2_each_call_leaves_after_the_one_before(platform):
    costs = platform(rpc_ms=3.0, invoke_ms=1.0)
    assert [call_ms(place, costs) for place in (0, 1, 3)] == [3.0, 4.0, 6.0]


def test_equation_2_calls_compute_no_more_than_the_cores_can_before_the_next_one(platform):
    assert call_computing_ms(platform(cpus=2, rpc_ms=3.0, invoke_ms=1.0)) == 2.0
    assert call_computing_ms(platform(cpus=4, rpc_ms=3.0, invoke_ms=1.0)) == 3.0


def test_equation_3_gathers_every_process_but_the_main_one(platform):
    costs = FORK.costs(platform(ipc_ms=0.5))
    assert [costs.gathering_ms(count) for count in (1, 2, 3)] == [0.0, 0.5, 1.0]


def test_equation_3_the_first_result_of_a_forked_process_takes_longer(platform):
    place = platform(ipc_ms=0.5, process_gather_ms=2.0)
    fork, pool = FORK.costs(place), POOL.costs(place)
    assert [fork.gathering_ms(count) for count in (1, 2, 3)] == [0.0, 2.5, 3.0]
    assert [pool.gathering_ms(count) for count in (1, 2, 3)] == [0.0, 0.5, 1.0]


def test_equation_4_forks_one_after_another_and_the_main_process_begins_last(platform):
    costs = FORK.costs(platform(process_block_ms=2.0, process_startup_ms=5.0))
    assert costs.delays_ms(1) == [0.0]
    assert costs.delays_ms(2) == [2.0, 5.0]
    assert costs.delays_ms(4) == [6.0, 5.0, 7.0, 9.0]


def test_equation_4_the_first_fork_may_block_longer(platform):
    place = platform(process_block_ms=2.0, process_startup_ms=5.0, process_first_block_ms=1.0)
    assert FORK.costs(place).delays_ms(3) == [5.0, 5.0, 8.0]


def test_equation_4_where_another_forks_the_main_process_waits_less(platform):
    place = platform(process_block_ms=2.0, process_startup_ms=5.0, main_wait_ms=1.0)
    assert FORK.costs(place).delays_ms(1) == [0.0]
    assert FORK.costs(place).delays_ms(4) == [1.0, 5.0, 7.0, 9.0]


def test_equation_4_what_a_process_computes_first_is_no_waiting(platform):
    place = platform(process_block_ms=2.0, process_startup_ms=5.0, process_compute_ms=4.0)
    costs = FORK.costs(place)
    assert (costs.ready_ms, costs.computing_ms, costs.blocks_computing) == (1.0, 4.0, True)
    assert costs.delays_ms(3) == [4.0, 5.0, 7.0]
    assert POOL.costs(place).computing_ms == 0.0


def test_equation_4_forking_is_waiting_where_it_takes_longer_than_all_computing(platform):
    place = platform(process_block_ms=4.0, process_startup_ms=5.0, process_compute_ms=3.0)
    costs = FORK.costs(place)
    assert (costs.ready_ms, costs.computing_ms, costs.blocks_computing) == (2.0, 3.0, False)
    assert costs.delays_ms(3) == [8.0, 5.0, 9.0]


def test_equation_4_the_jobs_of_a_pool_are_handed_out_first(platform):
    place = platform(process_block_ms=2.0, process_startup_ms=5.0, pool_dispatch_ms=0.3)
    assert POOL.costs(place).delays_ms(1) == [0.0]
    assert POOL.costs(place).delays_ms(3) == [0.3, 0.3, 0.3]
