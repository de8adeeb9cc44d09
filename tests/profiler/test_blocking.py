"""When a function waits: its threads, the GIL, locks, and what it starts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chiron.profiler.blocking import Wait, waits
from chiron.profiler.handler_run import HandlerRun, handler_runs
from chiron.profiler.shared_resources import files
from chiron.profiler.strace_text import parse

MakeRun = Callable[..., HandlerRun]

GIL = "futex(0x7f6f0, FUTEX_WAIT_BITSET_PRIVATE, 0, {tv_sec=3, tv_nsec=4}, FUTEX_BITSET_MATCH_ANY)"
LOCK = "futex(0x7f748, FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME, 0, NULL, FUTEX_BITSET_ANY)"
THREAD = "clone3({flags=CLONE_VM|CLONE_SIGHAND|CLONE_THREAD, exit_signal=0}, 88)"
SLEEP = "clock_nanosleep(CLOCK_MONOTONIC, 0, {tv_sec=0, tv_nsec=1}, NULL)"


def rounded(found: list[Wait]) -> list[tuple[float, float, str]]:
    return [(round(w.start_ms, 2), round(w.end_ms, 2), w.syscall) for w in found]


def test_blocking_calls_of_the_handler_are_waits(handler_run: MakeRun) -> None:
    run = handler_run(40, [(1, 1, 20, SLEEP, "0"), (1, 25, 5, 'read(3, "x", 1)', "1")])
    assert rounded(waits(run)) == [(1, 21, "clock_nanosleep"), (25, 30, "read")]
    assert round(run.duration_ms, 3) == 40


def test_calls_of_threads_that_serve_the_wrap_do_not_count(handler_run: MakeRun) -> None:
    assert waits(handler_run(40, [(9, 1, 30, "poll([{fd=4}], 1, 1000)", "1")])) == []


def test_waiting_for_the_gil_is_no_wait(handler_run: MakeRun) -> None:
    run = handler_run(40, [(1, 1, 5.04, GIL, "-1 ETIMEDOUT (x)"), (1, 7, 2, GIL, "0")])
    assert waits(run) == []


@pytest.mark.parametrize("call", [LOCK, GIL])
def test_waiting_long_for_a_lock_is_a_wait(handler_run: MakeRun, call: str) -> None:
    assert rounded(waits(handler_run(40, [(1, 1, 20, call, "0")]))) == [(1, 21, "futex")]


def test_a_handler_that_joins_its_thread_computes_while_the_thread_does(
    handler_run: MakeRun,
) -> None:
    run = handler_run(
        40,
        [
            (1, 1, 1, THREAD, "2"),
            (1, 2, 30, LOCK, "0"),
            (2, 12, 10, SLEEP, "0"),
        ],
    )
    assert rounded(waits(run)) == [
        (12, 22, "futex"),
    ]


def test_a_handler_waits_on_when_its_thread_has_ended(handler_run: MakeRun) -> None:
    lines = [(1, 1, 1, THREAD, "2"), (1, 2, 30, LOCK, "0")]
    text = "\n".join(
        [
            '1 1700000000.000000 access("/chiron/begin/0", F_OK) = -1 ENOENT (x) <0.000001>',
            *(
                f"{tid} {1_700_000_000 + start / 1000:.6f} {call} = {result} <{ms / 1000:.6f}>"
                for tid, start, ms, call, result in lines
            ),
            "2 1700000000.012000 +++ exited with 0 +++",
            '1 1700000000.040000 access("/chiron/end/0", F_OK) = -1 ENOENT (x) <0.000001>',
        ]
    )
    (run,) = handler_runs(parse(text))
    assert [(round(w.start_ms), round(w.end_ms)) for w in waits(run)] == [(12, 32)]


def test_waiting_for_a_process_is_a_wait_whatever_that_does(handler_run: MakeRun) -> None:
    run = handler_run(
        40,
        [
            (1, 1, 1, "vfork()", "2"),
            (1, 3, 20, "wait4(2, [{WIFEXITED(s)}], 0, NULL)", "2"),
            (2, 5, 1, 'openat(AT_FDCWD, "/data/model", O_RDONLY|O_CLOEXEC)', "3"),
        ],
    )
    assert rounded(waits(run)) == [(3, 23, "wait4")]
    assert files([run]).read == ("/data/model",)


def test_markers_that_are_not_a_pair_of_one_thread_are_no_run() -> None:
    begin = '1 1700000000.000000 access("/chiron/begin/0", F_OK) = -1 ENOENT (x) <0.000001>'
    end = '2 1700000000.040000 access("/chiron/end/0", F_OK) = -1 ENOENT (x) <0.000001>'
    assert handler_runs(parse(begin)) == []
    assert handler_runs(parse(f"{begin}\n{end}")) == []


def test_files_are_read_or_written_by_how_they_are_opened(handler_run: MakeRun) -> None:
    run = handler_run(
        40,
        [
            (1, 1, 0.1, 'openat(AT_FDCWD, "/etc/rates", O_RDONLY|O_CLOEXEC)', "3"),
            (1, 2, 0.1, 'openat(AT_FDCWD, "/data/out", O_WRONLY|O_CREAT|O_CLOEXEC, 0666)', "4"),
            (1, 3, 0.1, 'openat(AT_FDCWD, "/var/state", O_RDWR|O_CLOEXEC)', "5"),
            (1, 4, 0.1, 'openat(AT_FDCWD, "/missing", O_RDONLY|O_CLOEXEC)', "-1 ENOENT (x)"),
            (1, 5, 0.1, 'rename("/data/out", "/data/done")', "0"),
            (1, 6, 0.1, 'openat(AT_FDCWD, "/tmp/cache", O_RDONLY|O_CLOEXEC)', "3"),
            (1, 7, 0.1, 'openat(AT_FDCWD, "/denied", O_RDONLY|O_CLOEXEC)', "-1 EACCES (x)"),
        ],
    )
    found = files([run])
    assert found.read == ("/etc/rates", "/missing", "/tmp/cache", "/var/state")  # noqa: S108
    assert found.written == ("/data/done", "/data/out", "/tmp/cache", "/var/state")  # noqa: S108


def test_files_with_names_made_up_for_one_run_are_left_out(handler_run: MakeRun) -> None:
    runs = [
        handler_run(
            9,
            [
                (1, 1, 0.1, 'openat(AT_FDCWD, "/data/always", O_RDWR|O_CREAT, 0600)', "3"),
                (1, 2, 0.1, f'openat(AT_FDCWD, "/data/tmp{number}", O_RDWR|O_CREAT, 0600)', "3"),
            ],
        )
        for number in range(3)
    ]
    assert files(runs).written == ("/data/always",)


def test_temporary_files_that_are_numbered_have_a_star(handler_run: MakeRun) -> None:
    runs = [
        handler_run(
            9,
            [
                (
                    1,
                    1,
                    0.1,
                    f'openat(AT_FDCWD, "/tmp/out-{number}.png", O_RDWR|O_CREAT, 0600)',
                    "3",
                ),
                (1, 2, 0.1, 'openat(AT_FDCWD, "/tmp/page1.png", O_RDWR|O_CREAT, 0600)', "3"),
                (1, 3, 0.1, 'openat(AT_FDCWD, "/tmp/of-4711.png", O_RDWR|O_CREAT, 0600)', "3"),
            ],
        )
        for number in range(98, 101)
    ]
    found = ("/tmp/of-*.png", "/tmp/of-4711.png", "/tmp/out-*.png", "/tmp/page1.png")  # noqa: S108
    assert files(runs).written == found


def test_where_there_is_no_gil_a_short_wait_for_a_lock_is_one(handler_run: MakeRun) -> None:
    """As a JVM sleeps."""
    run = handler_run(10, [(1, 2.0, 5.0, GIL, "-1 ETIMEDOUT (Connection timed out)")])
    assert waits(run) == []
    (wait,) = waits(run, gil=False)
    assert (wait.syscall, round(wait.start_ms, 3), round(wait.end_ms, 3)) == ("futex", 2.0, 7.0)
