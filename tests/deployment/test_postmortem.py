"""Errors say what became of the functions that they are about, whose logs stay readable."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chiron.deployment.deploy import removed_on_failure
from chiron.deployment.postmortem import explain_failures, failed_executions
from chiron.openfaas.objects import LogLine
from chiron.workflow.errors import ChironError

KILLED = "function w1: killed: it used 200 MiB, above its memory limit of 96 MiB"


@pytest.fixture
def gateway(fake, tmp_path, monkeypatch):
    """Two wraps that have printed something, and where temporary files go."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    fake.add("w1", workflow="w", functions="a,b")
    fake.add("w10", workflow="w", functions="b,c")
    for name, time in (("w1", "2026-01-01T00:00:02Z"), ("w10", "2026-01-01T00:00:01Z")):
        fake.printed[name] = [LogLine(name=name, timestamp=time, text=f"{name} prints")]
    return fake


def failure(gateway, error, created=()):
    with pytest.raises(ChironError) as raised, removed_on_failure(gateway, created):
        raise error
    assert raised.value is error
    return error.message


def test_the_log_of_what_is_removed_is_in_a_file_of_the_error(gateway):
    message = failure(gateway, ChironError("wrong-output", "not 4"), ["w1", "w10", "absent"])
    assert gateway.deployed == {}
    kept = re.fullmatch(r"not 4; what was printed is in (\S+)", message)
    assert Path(kept[1]).read_text().splitlines() == [
        "2026-01-01T00:00:01Z w10 w10 prints",
        "2026-01-01T00:00:02Z w1 w1 prints",
    ]
    assert Path(kept[1]).stat().st_mode & 0o777 == 0o600


def test_where_nothing_was_printed_there_is_no_file(gateway, tmp_path):
    gateway.printed.clear()
    assert failure(gateway, ChironError("wrong-output", "not 4"), ["w1"]) == "not 4"
    assert list(tmp_path.glob("*.log")) == []


def test_an_interruption_keeps_no_log(gateway, tmp_path):
    with pytest.raises(KeyboardInterrupt), removed_on_failure(gateway, ["w1"]):
        raise KeyboardInterrupt
    assert "w1" not in gateway.deployed
    assert list(tmp_path.glob("*.log")) == []


def test_a_folder_that_takes_no_file_keeps_nothing_from_being_removed(gateway, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", "/absent")
    assert failure(gateway, ChironError("wrong-output", "not 4"), ["w1"]) == "not 4"
    assert "w1" not in gateway.deployed


def test_an_end_by_memory_has_functions_mend_and_log(gateway):
    with pytest.raises(ChironError) as raised, explain_failures(gateway):
        raise ChironError("function-failed", KILLED, functions=["w1"], status=502)
    assert raised.value.message == (
        f"{KILLED}; w1 runs a, b: give one of them more memory in stack.yaml, "
        "such as limits: {memory: 256Mi}; its log ends: w1 prints"
    )


def test_a_wrap_is_found_by_the_function_that_failed_in_it(gateway):
    error = ChironError("raised", "c: above the memory limit of 96 MiB", functions=["c"])
    assert "w10 runs b, c: give c more" in failure(gateway, error)


def test_a_function_in_two_wraps_is_nobodys_fault(gateway):
    error = ChironError("raised", "b: above the memory limit of 96 MiB", functions=["b"])
    assert failure(gateway, error) == "b: above the memory limit of 96 MiB"


def test_a_gateway_that_is_gone_leaves_the_error_as_it_was(gateway):
    gateway.failing["logs w1"] = "no-gateway"
    error = ChironError("function-failed", KILLED, functions=["w1"])
    assert failure(gateway, error) == KILLED


def test_executions_that_failed_are_found_in_the_log_of_their_entry():
    told = [
        ("2026-01-01T00:00:01Z", "[wave 1a2b3c4d] Traceback (most recent call last):"),
        ("2026-01-01T00:00:01Z", "[wave 1a2b3c4d] ValueError: no waves"),
        ("2026-01-01T00:00:02Z", "[wave 1a2b3c4d] failed with raised: ValueError: no waves"),
        # As of-watchdog passes lines on; and one without an execution, which was later.
        ("2026-01-01T00:00:04Z", "2026/01/01 00:00:04 stderr: [w1] failed with timeout: late"),
        ("2026-01-01T00:00:03Z", "[wave 5e6f7081] it failed with nothing: done"),
        ("2026-01-01T00:00:03Z", "failed with raised: what the gateway says"),
    ]
    found = failed_executions(LogLine(name="w1", timestamp=at, text=text) for at, text in told)
    assert [(each.function, each.execution, each.code, each.message) for each in found] == [
        ("w1", "", "timeout", "late"),
        ("wave", "1a2b3c4d", "raised", "ValueError: no waves"),
    ]
