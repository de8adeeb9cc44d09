"""Detects, in the process, whether a handler holds the GIL, computes without it, or waits.

A thread beside the handler sleeps at most 0.2 ms, requests the GIL, and notes the time when it has
it. Meanwhile the switch interval is so long that no thread is forced to release the GIL. So the
probe waits exactly while the handler holds the GIL. A probe that waited gave its core away once
more, which the kernel counts. While the GIL is free, the CPU clocks of the handler's threads and
``/proc/self/task/ID/syscall`` show whether they compute. The clocks of its child processes show
whether those compute. ``schedstat`` shows the time that was only waiting for a core. No privilege
is needed.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Iterator
from resource import RUSAGE_CHILDREN, RUSAGE_THREAD, getrusage

#: The probe samples soon after the GIL has changed hands, and ever less often while it is free.
SHORTEST_SLEEP_S, LONGEST_SLEEP_S = 0.00005, 0.0002
#: Within it no thread is forced to release the GIL. It is finite, as threads may wait for each
#: other in loops that never release the GIL.
SWITCH_INTERVAL_S = 1.0
RUNNING = "running"
_TASKS = "/proc/self/task"
#: An older thread that computes for so long, in seconds, is the function's, such as its pool's.
NOTICED_S = 0.0001
#: One probe at a time, as the switch interval is the process's.
_ALONE = threading.Lock()

# Called with the GIL held, unlike os.pread: releasing it would change what is measured.
_pread = ctypes.PyDLL(None).pread
_pread.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long]
_pread.restype = ctypes.c_ssize_t

#: Microseconds since the begin; CPU microseconds of threads so far; microseconds that the probe
#: intended to sleep; how often it then waited for the GIL; ``running``, the number of a system
#: call, or neither; microseconds so far for which the handler's thread, and the probe, waited for a
#: core; CPU microseconds of processes so far.
Tick = tuple[int, int, int, int, str, int, int, int]


class Probe:
    """Watches the thread that enters the ``with`` block, and all threads and processes started
    within it. It also watches older threads that compute meanwhile.
    """

    def __init__(self) -> None:
        self.ticks: list[Tick] = []
        self._watched: dict[int, int] = {}
        self._parents: dict[int, int] = {}
        self._cpu_s: dict[int, float] = {}
        self._before_s: dict[int, float] = {}
        self._threads_us = self._processes_us = 0
        self._others_compute = False
        self._buffer = ctypes.create_string_buffer(4096)
        self._ticking = threading.Event()
        self._leaving = False
        self._begin = 0.0

    def __enter__(self) -> Probe:
        _ALONE.acquire()
        self._interval = sys.getswitchinterval()
        self._task = threading.get_native_id()
        self._thread = threading.Thread(target=self._run, name="chiron-probe", daemon=True)
        try:
            sys.setswitchinterval(SWITCH_INTERVAL_S)
            self._thread.start()
            self._ticking.wait()
        except BaseException:
            self._close()
            raise
        self._begin = time.monotonic()
        self.ticks.clear()  # it has sampled since its start
        self._note(0, 1, "begin")
        return self

    def __exit__(self, *_: object) -> None:
        try:
            # One switch is its sleep's; a probe that lacks a core does not wait for the GIL yet.
            waited = max(0, self._switches_by_now() - self._switches - 1)
            self._note(0, waited, "end")
        finally:
            self._close()

    def _close(self) -> None:
        self._leaving = True
        sys.setswitchinterval(self._interval)
        _ALONE.release()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        own = threading.get_native_id()
        self._own = _open(f"{_TASKS}/{own}/status")
        self._schedstats = [_open(f"{_TASKS}/{each}/schedstat") for each in (self._task, own)]
        self._probe, self._clock = own, _cpu_clock(own)
        self._before_s = {thread: _cpu_s(_cpu_clock(thread)) for thread in _threads()}
        self._begun_s = time.process_time() - _cpu_s(self._clock)
        self._watch(self._task)
        self._switches = getrusage(RUSAGE_THREAD).ru_nvcsw
        sleep_s = LONGEST_SLEEP_S
        self._look_for_threads()
        _sleep_exactly()
        try:
            while not self._leaving:
                self._ticking.set()
                time.sleep(sleep_s)
                self._look_for_threads()
                so_far = getrusage(RUSAGE_THREAD).ru_nvcsw
                if not self._leaving:
                    waited = max(0, so_far - self._switches - 1)  # one was the sleep
                    self._note(round(sleep_s * 1e6), waited, self._state())
                    sleep_s = SHORTEST_SLEEP_S if waited else min(2 * sleep_s, LONGEST_SLEEP_S)
                self._switches = so_far
        finally:
            self._ticking.set()
            kept = (*self._watched.values(), *self._parents.values())
            for descriptor in (self._own, *self._schedstats, *kept):
                if descriptor >= 0:
                    os.close(descriptor)

    def _look_for_threads(self) -> None:
        for thread in _threads():
            if thread in self._watched or thread == self._probe:
                continue
            before_s = self._before_s.get(thread)
            if before_s is None or (
                self._others_compute and _cpu_s(_cpu_clock(thread)) - before_s > NOTICED_S
            ):
                self._watch(thread)

    def _watch(self, thread: int) -> None:
        self._watched[thread] = _open(f"{_TASKS}/{thread}/syscall")
        self._parents[thread] = _open(f"{_TASKS}/{thread}/children")
        for child in self._children(thread):
            self._before_s[child] = _cpu_s(_clock_of_process(child))

    def _note(self, slept_us: int, waited: int, state: str) -> None:
        """Add a tick. All clocks are read together, as this thread may lose its core in between."""
        cpu_us, delays_us, processes_us = self._cpu_us(), self._delays_us(), self._of_processes_us()
        now_us = round((time.monotonic() - self._begin) * 1e6)
        self.ticks.append((now_us, cpu_us, slept_us, waited, state, *delays_us, processes_us))

    def _cpu_us(self) -> int:
        """Return the larger CPU time: of the watched threads, or of the process without the probe.

        The process's time includes threads that ended unseen, but other running threads only as of
        their cores' last tick.
        """
        for thread in list(self._watched):
            now_s = _cpu_s(_cpu_clock(thread)) - self._before_s.get(thread, 0.0)
            self._cpu_s[thread] = max(now_s, self._cpu_s.get(thread, 0.0))
        whole_s = time.process_time() - _cpu_s(self._clock) - self._begun_s
        watched_s = sum(self._cpu_s.values())
        self._others_compute = whole_s - watched_s > NOTICED_S
        self._threads_us = max(self._threads_us, round(max(whole_s, watched_s) * 1e6))
        return self._threads_us

    def _of_processes_us(self) -> int:
        """Return the CPU time of the processes that watched threads started, live and ended.

        Their clocks advance with the ticks of their cores, every few milliseconds. The time of a
        process whose parent is another of them is missing from its end until its parent's.
        """
        ended = getrusage(RUSAGE_CHILDREN)
        so_far_s = ended.ru_utime + ended.ru_stime
        for process in self._processes():
            now_s = _cpu_s(_clock_of_process(process))
            so_far_s += max(0.0, now_s - self._before_s.get(process, 0.0))
        self._processes_us = max(self._processes_us, round(so_far_s * 1e6))
        return self._processes_us

    def _processes(self) -> Iterator[int]:
        parents = list(self._parents)
        while parents:
            for process in self._children(parents.pop()):
                yield process
                if process not in self._parents:
                    file = f"/proc/{process}/task/{process}/children"
                    self._parents[process] = _open(file)
                    parents.append(process)

    def _children(self, parent: int) -> list[int]:
        return list(map(int, self._read(self._parents[parent]).split()))

    def _delays_us(self) -> tuple[int, int]:
        """Return how long the handler's thread and the probe waited for a core (proc(5))."""
        handlers, own = (self._delay_us(descriptor) for descriptor in self._schedstats)
        return handlers, own

    def _delay_us(self, schedstat: int) -> int:
        words = self._read(schedstat).split()
        return int(words[1]) // 1000 if len(words) > 1 else 0

    def _state(self) -> str:
        """Return ``running`` if any thread is, else the system call of the handler's thread."""
        calls = [self._call(descriptor) for descriptor in self._watched.values()]
        return RUNNING if RUNNING in calls else next(iter(calls), "")

    def _call(self, descriptor: int) -> str:
        words = self._read(descriptor).split()
        return words[0] if words else ""

    def _switches_by_now(self) -> int:
        """Return how often the probe has given its core away."""
        _, _, count = self._read(self._own).partition("\nvoluntary_ctxt_switches:")
        return int(count.split()[0]) if count else 0

    def _read(self, descriptor: int) -> str:
        size = _pread(descriptor, self._buffer, len(self._buffer), 0)
        return self._buffer.raw[: max(0, size)].decode()


def _threads() -> list[int]:
    return [int(name) for name in os.listdir(_TASKS)]  # noqa: PTH208 (every tick: four times as fast)


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError:  # the thread has ended, or the kernel lacks that file
        return -1


def _sleep_exactly() -> None:
    """Make the kernel end this thread's sleeps on time, not up to 50 us later (prctl(2))."""
    set_timer_slack = 29
    ctypes.CDLL(None).prctl(set_timer_slack, 1, 0, 0, 0)


def _cpu_clock(thread: int) -> int:
    """Return the clock of a thread's CPU time, for any kind of thread (clock_getcpuclockid)."""
    return (~thread << 3) | 6


def _clock_of_process(process: int) -> int:
    """Return the clock of the CPU time of all its threads."""
    return (~process << 3) | 2


def _cpu_s(clock: int) -> float:
    """Return the time of a clock; 0 if its thread or process is gone."""
    try:
        return time.clock_gettime(clock)
    except OSError:
        return 0.0
