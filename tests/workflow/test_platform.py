"""A platform's constants are finite, not negative, and leave the simulation something to do."""

from __future__ import annotations

import math

from chiron.workflow.documents import validate
from chiron.workflow.platform import Platform
from tests.rows import each_row

PLATFORM = {
    "format": 1,
    "name": "here",
    "cpus": 2,
    "rpc_ms": 8.0,
    "invoke_ms": 0.2,
    "ipc_ms": 0.1,
    "process_startup_ms": 3.0,
    "process_block_ms": 1.0,
    "pool_dispatch_ms": 0.2,
    "thread_startup_ms": 0.1,
    "switch_cost_ms": 0.01,
}


def test_python_switches_every_5_ms_unless_told_otherwise():
    platform = validate(Platform, PLATFORM, "platform")
    assert platform.switch_interval_ms == 5.0
    assert platform.request_ms == 0.0


@each_row("field", [key for key in PLATFORM if key.endswith("_ms")])
@each_row("value", [-0.1, math.nan, math.inf, "1", None, 3_600_001.0])
def test_every_constant_is_a_time_within_an_hour(refused, field, value):
    error = refused(validate, Platform, PLATFORM | {field: value}, "platform")
    assert (error.code, error.path) == ("bad-document", field)


@each_row(
    ("field", "value"),
    [
        ("cpus", 0),
        ("cpus", -1),
        ("cpus", 1.5),
        ("cpus", 10_000),
        ("switch_interval_ms", 0),
        ("switch_interval_ms", 1e-9),
        ("switch_interval_ms", 10_001),
        ("format", 2),
        ("rpc", 1.0),
    ],
)
def test_what_no_machine_has_is_refused_by_its_field(refused, field, value):
    assert refused(validate, Platform, PLATFORM | {field: value}, "platform").path == field


@each_row("field", list(PLATFORM))
def test_every_constant_has_to_be_there(refused, field):
    known = {key: value for key, value in PLATFORM.items() if key != field}
    assert refused(validate, Platform, known, "platform").path == field
