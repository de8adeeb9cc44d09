"""Equations (1)-(4), each with numbers that one can add up by hand."""

from __future__ import annotations

import pytest

from predictor.equations import (
    call_computing_ms,
    calls_ms,
    workflow_latency_ms,
)
from predictor.mechanisms import MECHANISMS, mechanism_of
from workflow.errors import ChironError

FORK, POOL = MECHANISMS["fork"], MECHANISMS["pool"]


def test_a_mechanism_that_there_is_not_is_refused_by_name():
    with pytest.raises(ChironError, match="there is no mechanism 'magic': plan with fork or pool"):
        mechanism_of("magic")


def test_equation_1_adds_the_stages_and_what_the_request_costs():
    assert workflow_latency_ms([10.0, 2.0, 3.0], 0.0) == 15.0
    assert workflow_latency_ms([10.0, 2.0, 3.0], 1.5) == 16.5


def test_equation_2_calls_the_other_wraps_one_after_another(platform):
    costs = platform(rpc_ms=3.0, invoke_ms=1.0)
    assert calls_ms(1, costs, "first") == [0.0]
    assert calls_ms(4, costs, "first") == [0.0, 4.0, 5.0, 6.0]  # (k-1) T_INV + T_RPC


def test_equation_2_who_calls_the_others_begins_when_that_is_done(platform):
    costs = platform(rpc_ms=3.0, invoke_ms=1.0, send_ms=0.5)
    assert calls_ms(1, costs, "first") == [0.0]
    assert calls_ms(4, costs, "first") == [1.5, 4.0, 5.0, 6.0]
    assert calls_ms(2, costs, "entry") == [3.0, 4.0]


def test_equation_2_where_nobody_is_local_the_first_call_leaves_at_once(platform):
    costs = platform(rpc_ms=3.0, invoke_ms=1.0)
    assert calls_ms(2, costs, "entry") == [3.0, 4.0]


def test_equation_2_calls_compute_no_more_than_the_cores_can_before_the_next_one(platform):
    assert call_computing_ms(platform(cpus=2, rpc_ms=3.0, invoke_ms=1.0)) == 2.0
    assert call_computing_ms(platform(cpus=4, rpc_ms=3.0, invoke_ms=1.0)) == 3.0


def test_equation_3_gathers_every_process_but_the_main_one(platform):
    costs = platform(ipc_ms=0.5)
    assert [FORK.gathering_ms(count, costs) for count in (1, 2, 3)] == [0.0, 0.5, 1.0]


def test_equation_3_the_first_result_of_a_forked_process_takes_longer(platform):
    costs = platform(ipc_ms=0.5, process_gather_ms=2.0)
    assert [FORK.gathering_ms(count, costs) for count in (1, 2, 3)] == [0.0, 2.5, 3.0]
    assert [POOL.gathering_ms(count, costs) for count in (1, 2, 3)] == [0.0, 0.5, 1.0]


def test_equation_4_forks_one_after_another_and_the_main_process_begins_last(platform):
    costs = platform(process_block_ms=2.0, process_startup_ms=5.0)
    assert FORK.starts_ms(1, costs) == [0.0]
    assert FORK.starts_ms(2, costs) == [2.0, 5.0]
    assert FORK.starts_ms(4, costs) == [6.0, 5.0, 7.0, 9.0]


def test_equation_4_where_another_forks_the_main_process_waits_less(platform):
    costs = platform(process_block_ms=2.0, process_startup_ms=5.0, main_wait_ms=1.0)
    assert FORK.starts_ms(1, costs) == [0.0]
    assert FORK.starts_ms(4, costs) == [1.0, 5.0, 7.0, 9.0]


def test_equation_4_what_a_process_computes_first_is_no_waiting(platform):
    costs = platform(process_block_ms=2.0, process_startup_ms=5.0, process_compute_ms=4.0)
    assert FORK.starts_ms(3, costs) == [4.0, 1.0, 1.0]
    assert FORK.forking_ms(3, costs) == [0.0, 2.0, 2.0]
    assert FORK.computing_ms(3, costs) == [0.0, 2.0, 2.0]
    assert FORK.delays_ms(3, costs) == [4.0, 5.0, 7.0]
    assert FORK.forking_ms(1, costs) == FORK.computing_ms(1, costs) == [0.0]
    assert POOL.forking_ms(3, costs) == POOL.computing_ms(3, costs) == [0.0, 0.0, 0.0]


def test_equation_4_forking_is_waiting_where_it_takes_longer_than_all_computing(platform):
    costs = platform(process_block_ms=4.0, process_startup_ms=5.0, process_compute_ms=3.0)
    assert FORK.starts_ms(3, costs) == [8.0, 2.0, 6.0]
    assert FORK.forking_ms(3, costs) == [0.0, 0.0, 0.0]
    assert FORK.computing_ms(3, costs) == [0.0, 3.0, 3.0]
    assert FORK.delays_ms(3, costs) == [8.0, 5.0, 9.0]


def test_equation_4_the_jobs_of_a_pool_are_handed_out_first(platform):
    costs = platform(process_block_ms=2.0, process_startup_ms=5.0, pool_dispatch_ms=0.3)
    assert POOL.starts_ms(1, costs) == [0.0]
    assert POOL.starts_ms(3, costs) == [0.3, 0.3, 0.3]
