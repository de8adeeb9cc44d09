"""The fork server: a single-threaded process with imported functions, which forks the workers.

Forking a process with threads copies locks that no thread will ever release. So the server never
forks. The fork server reads messages from a socket. SPAWN comes with the socket of a new process.
It is not answered, so a stage requests its processes without waiting; they start in that order. END
comes with a socket for the answer how a process ended; if it runs, it is killed. BEAT is the
server's sign of life: if the next one does not come, the fork server ends the server.

When the server ends, in whatever way, the socket ends. The fork server then kills its children and
ends. If it is killed itself, the kernel kills them. Its children are workers and, if functions are
commands, reapers.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import mmap
import os
import selectors
import signal
import socket
import struct
import sys
import traceback
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from wrap.core.heartbeat import End, MissedBeats
from wrap.event_loop.liveness import BEAT_S, END_SIGNAL
from wrap.http.server.program import stop_alarm
from wrap.net.sockets import patient
from wrap.observe import log
from wrap.workers import reaper

#: The kind; a number; for SPAWN the process of the plan, or 0 if its calls tell it.
MESSAGE = struct.Struct("!BQI")
SPAWN, END, BEAT = 1, 2, 3
_PR_SET_PDEATHSIG = 1
#: The most endings to remember until the server asks.
_REMEMBERED = 1024
_LIBC = ctypes.CDLL(None, use_errno=True)
#: The module for unusual answers, which takes long to import. A child that has imported it ends
#: with this status; later children then inherit it.
_ANSWERS, _LACKED = "wrap.functions.by_flask", 100

Serve = Callable[[socket.socket, int], None]


class ForkServer:
    """Forks children, kills and reaps them.

    Args:
        serve: a worker's main function, called with its channel and its number in the plan or 0.
        renew: called in this process before the first worker is forked, and after each.
        contained: whether all descendants of a worker end with it. The worker then adopts orphans,
            but does not reap them, so only a short-lived worker may be contained.
        commands: whether to have reapers.
    """

    def __init__(
        self,
        control: socket.socket,
        serve: Serve,
        renew: Callable[[], None],
        *,
        contained: bool,
        commands: bool,
    ) -> None:
        self._control = control
        self._serve = serve
        self._renew = renew
        self._contained = contained
        self._spared = set(reaper.children())  # started while functions were imported
        self._listening = reaper.listener() if commands else None
        self._idle = mmap.mmap(-1, reaper.MOST)
        #: The slot of each reaper, by its pid.
        self._reapers: dict[int, int] = {}
        self._pids: dict[int, int] = {}
        self._asked: dict[int, socket.socket] = {}
        self._endings: OrderedDict[int, str] = OrderedDict()
        self._server, self._own = os.getppid(), os.getpid()
        self._beats = MissedBeats()
        self._alarm, alarm = socket.socketpair()
        self._wakers = (self._alarm, alarm)
        self._alarm.setblocking(False)
        alarm.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(alarm.fileno(), warn_on_full_buffer=False)
        # Adopt and reap processes that handlers leave behind, as not every sandbox's first process
        # reaps.
        reaper.adopt_orphans()
        for ignored in (signal.SIGTERM, signal.SIGINT):  # sent to the group; the server decides
            signal.signal(ignored, signal.SIG_IGN)

    def run(self) -> None:
        selector = selectors.PollSelector()
        selector.register(self._control, selectors.EVENT_READ, self._obey)
        selector.register(self._alarm, selectors.EVENT_READ, self._reap)
        self._supply()
        self._renew()
        goes_on = True
        while goes_on:
            found = selector.select(self._patience_s())
            if not found:
                self._miss()
            goes_on = all(key.data() for key, _ in found)
            self._supply()
        for pid in self._pids.values():
            kill(pid)

    def _supply(self) -> None:
        """Ensure that a reaper waits for the next program."""
        if self._listening is None or self._idle.find(b"\1") >= 0:
            return
        taken = set(self._reapers.values())
        slot = next((slot for slot in range(reaper.MOST) if slot not in taken), None)
        if slot is None:
            return
        try:
            pid = os.fork()
        except OSError as error:
            print(f"no process to run commands could be forked: {error}")
            return
        if pid == 0:
            self._become(partial(self._reap_commands, self._listening, slot), signal.SIGTERM)
        self._idle[slot] = 1
        self._reapers[pid] = slot

    def _reap_commands(self, listening: socket.socket, slot: int) -> None:
        with self._wakers[1] as alarm:

            def short() -> None:
                with contextlib.suppress(BlockingIOError):  # then enough bytes wait to wake it
                    alarm.send(b"\0")

            reaper.Reaper(listening, self._idle, slot, short).serve()

    def _obey(self) -> bool:
        message, descriptors, _, _ = socket.recv_fds(self._control, MESSAGE.size, 1)
        if not message:
            return False
        kind, number, process = MESSAGE.unpack(message)
        if kind == BEAT:
            self._beats.beat(number)
            return True
        channel = patient(socket.socket(fileno=descriptors[0]))
        if kind == SPAWN:
            self._spawn(number, process, channel)
        else:
            self._end(number, channel)
        return True

    def _patience_s(self) -> float | None:
        """Return the seconds until a beat is missed, or a reaper is to be forked again."""
        lacks_reaper = self._listening is not None and not self._reapers
        return BEAT_S if self._beats.most or lacks_reaper else None

    def _miss(self) -> None:
        """Count a missing beat; end the server if too many are missing."""
        end = self._beats.miss()
        if end is None or os.getppid() != self._server:
            return
        if end is End.TELL:
            seconds = self._beats.most * BEAT_S
            print(f"the server's loops have stood still for {seconds:.0f} s, so it is ended")
            log.end_lines()
        os.kill(self._server, signal.SIGKILL if end is End.KILL else END_SIGNAL)

    def _spawn(self, number: int, process: int, channel: socket.socket) -> None:
        try:
            pid = os.fork()
        except OSError as error:
            self._answer(number, f"could not be forked ({error})")
        else:
            if pid == 0:
                self._become(partial(self._be_worker, channel, process))
            self._pids[number] = pid
            self._renew()
        channel.close()

    def _be_worker(self, channel: socket.socket, process: int) -> int:
        for own in (self._wakers[1], self._listening):
            if own is not None:
                own.close()
        if self._contained:
            reaper.adopt_orphans()
        lacked = _ANSWERS not in sys.modules
        with contextlib.suppress(ConnectionError):  # the server has ended, or wants it no more
            self._serve(channel, process)
        return _LACKED if lacked and _ANSWERS in sys.modules else 0

    def _become(self, do: Callable[[], int | None], parents_end: int = signal.SIGKILL) -> NoReturn:
        """Run `do` in a child, to which the kernel sends `parents_end` when this process ends."""
        status: int | None = 1
        try:
            os.setpgid(0, 0)  # processes that it starts end with it
            signal.set_wakeup_fd(-1)
            for default in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
                signal.signal(default, signal.SIG_DFL)
            die_with_parent(self._own, parents_end)
            stop_alarm()
            for inherited in (self._control, self._alarm, *self._asked.values()):
                inherited.close()
            status = do()
        except BaseException:
            traceback.print_exc()
        finally:
            log.end_lines()
            os._exit(status or 0)

    def _end(self, number: int, answer: socket.socket) -> None:
        self._asked[number] = answer
        if number in self._pids:
            kill(self._pids[number])
        else:
            self._answer(number, self._endings.pop(number, "never started"))

    def _reap(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            self._alarm.recv(4096)
        numbers = {pid: number for number, pid in self._pids.items()}
        while (pid := _ended_child()) is not None:
            number = numbers.get(pid)
            if number is not None:
                kill(pid)  # its process group, before its pid can be reused
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            if code == _LACKED:
                importlib.import_module(_ANSWERS)
            if pid in self._reapers:
                self._idle[self._reapers.pop(pid)] = 0
            if number is not None:
                del self._pids[number]
                self._answer(number, ending(code))
        if self._contained:
            self._end_left()
        return True

    def _end_left(self) -> None:
        """Kill the processes that workers have left, which have become this process's children."""
        for pid in reaper.children():
            if not (pid in self._reapers or pid in self._spared or pid in self._pids.values()):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)

    def _answer(self, number: int, ending: str) -> None:
        if number in self._asked:
            with self._asked.pop(number) as answer, contextlib.suppress(OSError):
                answer.send(ending.encode())
            return
        self._endings[number] = ending
        if len(self._endings) > _REMEMBERED:
            self._endings.popitem(last=False)


def _ended_child() -> int | None:
    with contextlib.suppress(ChildProcessError):
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return found.si_pid if found else None
    return None


def kill(pid: int) -> None:
    """Kill a child that has not been reaped, and its process group."""
    for end in (os.killpg, os.kill):  # it may not have its group yet
        with contextlib.suppress(ProcessLookupError, PermissionError):
            end(pid, signal.SIGKILL)


def ending(code: int) -> str:
    """Describe how a process ended; `code` is its exit status, or minus the fatal signal."""
    if code >= 0:
        return f"exited with status {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def die_with_parent(parent: int, number: int) -> None:
    """Have the kernel send this process the signal `number` when its `parent` ends, or end now.

    The parent may have ended since it forked this process.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # it ended in between
        os._exit(1)
