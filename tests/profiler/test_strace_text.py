"""The reader of strace's output, on lines as strace 6.1 writes them."""

from __future__ import annotations

from chiron.profiler.strace_text import parse

SLEEP = (
    "71 1700000000.000100 clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, "
    "{tv_sec=3171, tv_nsec=449542278}, NULL) = 0 <0.050156>"
)


def test_a_complete_call_has_thread_name_times_and_result() -> None:
    (call,) = parse(SLEEP).calls
    assert (call.tid, call.name, call.result) == (71, "clock_nanosleep", "0")
    assert call.end_s is not None
    assert round(call.end_s - call.start_s, 6) == 0.050156


def test_halves_of_a_call_are_joined_over_the_lines_of_other_threads() -> None:
    trace = parse(
        "71 1700000000.000100 recvfrom(3,  <unfinished ...>\n"
        '72 1700000000.000200 sendto(4, "hi", 2, 0, NULL, 0) = 2 <0.000088>\n'
        '71 1700000000.020400 <... recvfrom resumed>"hi", 10, 0, NULL, NULL) = 2 <0.020300>\n'
    )
    received, sent = trace.calls
    assert (received.name, received.tid, received.arguments) == (
        "recvfrom",
        71,
        '3,  "hi", 10, 0, NULL, NULL',
    )
    assert received.end_s is not None
    assert round(received.end_s - received.start_s, 4) == 0.0203
    assert sent.tid == 72


def test_a_call_without_arguments_and_padding_before_the_result_is_read() -> None:
    (call,) = parse("71 1700000000.000100 vfork()         = 72 <0.002076>").calls
    assert (call.name, call.arguments, call.result) == ("vfork", "", "72")


def test_a_string_that_looks_like_the_end_of_a_call_stays_an_argument() -> None:
    (call,) = parse('71 1700000000.000100 write(1, ") = 0 <0.5>", 11) = 11 <0.000002>').calls
    assert (call.arguments, call.result) == ('1, ") = 0 <0.5>", 11', "11")


def test_a_call_that_goes_on_after_a_signal_keeps_its_name() -> None:
    trace = parse(
        "71 1700000000.000100 read(3, 0x7f, 10)  = ? ERESTARTSYS (To be restarted) <0.010000>\n"
        "71 1700000000.010200 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---\n"
        "71 1700000000.010300 restart_syscall(<... resuming interrupted read ...> "
        "<unfinished ...>\n"
        "71 1700000000.030300 <... restart_syscall resumed>) = 2 <0.020000>\n"
    )
    assert [call.name for call in trace.calls] == ["read", "read"]
    assert trace.calls[0].failed
    assert not trace.calls[1].failed


def test_errors_are_failures() -> None:
    (call,) = parse(
        '71 1700000000.000100 openat(AT_FDCWD, "/x", O_RDONLY) = -1 ENOENT (No such file or '
        "directory) <0.000010>"
    ).calls
    assert call.failed


def test_ends_of_threads_are_noted() -> None:
    trace = parse(
        "71 1700000000.500000 +++ exited with 0 +++\n72 1700000000.600000 +++ killed by SIGKILL +++"
    )
    assert trace.exits == {71: 1700000000.5, 72: 1700000000.6}


def test_a_call_that_the_tracer_left_behind_has_no_end() -> None:
    trace = parse(
        "71 1700000000.000100 futex(0x55, FUTEX_WAIT_PRIVATE, 0, NULL <unfinished ...>\n"
        "72 1700000000.000200 poll([{fd=4}], 1, 1000 <detached ...>"
    )
    assert [(call.name, call.end_s, call.failed) for call in trace.calls] == [
        ("futex", None, True),
        ("poll", None, True),
    ]


def test_a_tail_that_was_cut_off_is_passed_over() -> None:
    assert parse(f"{SLEEP}\n71 1700000000.0601").calls == parse(SLEEP).calls
    assert parse(f"{SLEEP}\n71 1700000000.060100 read(3, ").calls == parse(SLEEP).calls


def test_a_result_whose_call_began_before_the_trace_is_passed_over() -> None:
    assert parse("71 1700000000.000100 <... poll resumed>) = 0 (Timeout) <0.5>").calls == ()
