"""What ended a function, as its log tells: its memory limit, or an import."""

from __future__ import annotations

import pytest

from chiron.openfaas.endings import FailedImports, last_words, memory_note
from chiron.openfaas.objects import LogLine
from chiron.workflow.errors import ChironError

WATCHDOG = "2026/11/23 10:00:00 Forked function has terminated: signal: killed"


def note(message, holds=("f", "g"), log=(), limit_mib=128, blamed=()):
    error = ChironError("function-failed", message, functions=blamed)
    return memory_note(error, "w", holds, [LogLine(name="w", text=text) for text in log], limit_mib)


@pytest.mark.parametrize(
    ("message", "blamed", "mend"),
    [
        (
            "w: killed: it used 130 MiB, above its memory limit of 128 MiB",
            (),
            "w runs f, g: give one of them more memory in stack.yaml, "
            "such as limits: {memory: 256Mi}",
        ),
        (
            "w: killed: it used 700 MiB, above its memory limit of 128 MiB",
            ("g", "other"),
            "w runs f, g: give g more memory in stack.yaml, such as limits: {memory: 704Mi}",
        ),
        (
            "wrap w: the kernel killed a process above the memory limit of 100 MiB: f died",
            ("f",),
            "w runs f, g: give f more memory in stack.yaml, such as limits: {memory: 256Mi}",
        ),
        (
            "wrap w: the kernel killed a process above the memory limit of 4096 MiB: f died",
            ("f",),
            "that is all that this machine or container has: run less beside w",
        ),
        ("function f failed: KeyError", ("f",), None),
    ],
)
def test_the_gateways_or_the_wraps_word_for_it(message, blamed, mend):
    assert note(message, blamed=blamed) == mend


def test_a_function_that_is_no_wrap_is_the_one_to_mend():
    found = note("above its memory limit of 64 MiB", holds=("w",))
    assert found == "give w more memory in stack.yaml, such as limits: {memory: 128Mi}"


def test_a_kill_in_the_log_of_a_gateway_that_says_nothing_may_be_that():
    found = note("status 500: Can't reach service for: w.", log=["[f] begins", WATCHDOG])
    assert found == (
        f"its log has '{WATCHDOG}', which may be its memory limit of 128 MiB: "
        "w runs f, g: give one of them more memory in stack.yaml, such as limits: {memory: 256Mi}"
    )
    unlimited = note("status 500", holds=("w",), log=[WATCHDOG], limit_mib=0)
    assert unlimited.endswith("memory limit: give w more memory in stack.yaml (limits: memory)")


def test_an_old_kill_is_not_made_the_cause():
    assert note("status 500", log=[WATCHDOG, *(f"line {n}" for n in range(5))]) is None


def test_the_gateways_own_lines_do_not_push_out_the_functions():
    lines = ["one", "", "two", *["gateway: killed; next start in 1 s"] * 6]
    log = [LogLine(name="w", text=text) for text in lines]
    assert last_words(log) == "its log ends: one | two"
    assert last_words(log[3:]).startswith("its log ends: gateway: killed")
    assert last_words([]) is None


@pytest.mark.parametrize(
    ("text", "ended", "found"),
    [
        ("ImportError: no ffmpeg", False, True),
        ("KeyError: 'URL'", True, True),
        ("KeyError: 'URL'", False, False),  # a request to the version before may have that
        ("ConnectionError: refused", True, False),  # what it needs may be about to start
        ("f: KeyError: 'URL'", True, False),
    ],
)
def test_imports_that_fail_whenever_they_are_tried_are_found(text, ended, found):
    before, after = (LogLine(name="w", timestamp=at, text=text) for at in "12")
    imports = FailedImports()
    assert imports.last([before], ended=True) is None
    assert imports.last([before, after], ended=ended) == (text if found else None)
