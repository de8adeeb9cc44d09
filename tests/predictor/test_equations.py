"""Equations (1)-(4), each with numbers that one can add up by hand."""

from __future__ import annotations

import pytest

from predictor.equations import (
    process_starts_ms,
    stage_latency_ms,
    workflow_latency_ms,
    wrap_latency_ms,
)


def test_equation_1_adds_the_stages_and_what_the_request_costs():
    assert workflow_latency_ms([10.0, 2.0, 3.0], 0.0) == 15.0
    assert workflow_latency_ms([10.0, 2.0, 3.0], 1.5) == 16.5


@pytest.mark.parametrize(
    ("local_ms", "remote_ms", "expected"),
    [
        (10.0, [], 10.0),
        (10.0, [5.0], 10.0),
        (10.0, [5.0, 5.0], 10.0),
        (10.0, [5.0, 5.0, 5.0], 11.0),  # the fourth wrap: 5 + 3 T_INV + T_RPC
        (0.0, [5.0], 9.0),  # the second wrap: 5 + T_INV + T_RPC
        (10.0, [9.0, 1.0], 13.0),
    ],
)
def test_equation_2_calls_the_other_wraps_one_after_another(
    platform, local_ms, remote_ms, expected
):
    costs = platform(rpc_ms=3.0, invoke_ms=1.0)
    assert stage_latency_ms(local_ms, remote_ms, costs) == expected


def test_equation_2_where_nobody_is_local_the_first_call_leaves_at_once(platform):
    costs = platform(rpc_ms=3.0, invoke_ms=1.0)
    assert stage_latency_ms(None, [5.0], costs) == 8.0
    assert stage_latency_ms(None, [5.0, 5.0], costs) == 9.0


def test_equation_3_gathers_every_process_but_the_main_one():
    assert wrap_latency_ms([6.0], 0.5) == 6.0
    assert wrap_latency_ms([4.0, 6.0, 5.0], 0.5) == 7.0


def test_equation_4_forks_one_after_another_and_the_main_process_begins_last(platform):
    costs = platform(process_block_ms=2.0, process_startup_ms=5.0)
    assert process_starts_ms(1, "fork", costs) == [0.0]
    assert process_starts_ms(2, "fork", costs) == [2.0, 5.0]
    assert process_starts_ms(4, "fork", costs) == [6.0, 5.0, 7.0, 9.0]


def test_equation_4_workers_of_a_pool_wait_for_nobody(platform):
    costs = platform(process_block_ms=2.0, process_startup_ms=5.0, pool_dispatch_ms=0.3)
    assert process_starts_ms(1, "pool", costs) == [0.0]
    assert process_starts_ms(3, "pool", costs) == [0.0, 0.3, 0.3]
