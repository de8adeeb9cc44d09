"""The program that serves: its socket, its end, and its restart."""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

#: The signals to end.
STOP = (signal.SIGTERM, signal.SIGINT)
_LISTENER, _KEPT = "LISTEN_FD", "KEPT_FDS"
#: The longest time, in seconds, from listening until probes see the program. Kubernetes' liveness
#: probe checks after 2, 4 and 6 s, and ends a sandbox whose file it has not seen by then. On a busy
#: node, a program takes that long until it listens.
_SHOWN_S = 1.0
#: The file that shows the program to probes, until it exists.
_unshown: Path | None = None
#: The signals to end that came after probes had seen the program, before it serves.
told: list[int] = []
_STARTED_IN, _STARTED_WITH = os.getcwd(), dict(os.environ)  # noqa: PTH109 (as execve has it)
_STARTED_AS, _ARGUMENTS = [sys.executable, *sys.orig_argv[1:]], sys.argv[1:]
_UMASK = os.umask(0o077)
os.umask(_UMASK)
leave, _replace = os._exit, os.execve  # the wrap runtime replaces them for handlers


def within_descriptors(most: int, share: int) -> int:
    """Return `most`, or this share of the descriptors that the process may have if that is less."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = descriptors == resource.RLIM_INFINITY
    return most if unlimited else max(1, min(most, descriptors // share))


def keep(variable: str, value: str) -> None:
    """Set a variable in the environment of the restarted program."""
    _STARTED_WITH[variable] = value


def listen(environment: Mapping[str, str]) -> list[socket.socket]:
    """Return the listening socket, and connections that were kept at a restart.

    With ``suppress_lock`` the program, not the watchdog, writes the file by which probes see that
    the sandbox accepts requests: the watchdog would write it before there is a socket. `show`
    writes the file, at the latest 1 s after listening; requests that come before then wait. Only
    the main thread can call this.

    Raises OSError, for example if the port is in use.
    """
    if inherited := environment.get(_LISTENER):
        numbers = [inherited, *filter(None, environment.get(_KEPT, "").split(","))]
        sockets = [socket.socket(fileno=int(number)) for number in numbers]
        for each in sockets:
            each.set_inheritable(False)
        return sockets
    host = environment.get("WRAP_HOST", "0.0.0.0")  # noqa: S104 (in a container, behind the watchdog)
    sockets = [socket.create_server((host, int(environment.get("port", "5000"))))]
    if environment.get("suppress_lock") == "true":
        _show_later(Path(environment.get("TMPDIR", "/tmp"), ".lock"))  # noqa: S108 (the watchdog's)
    return sockets


def _show_later(file: Path) -> None:
    """Show the program while it still imports, if that takes long; there may be no thread then.

    From then on requests may wait, so a program that gets a signal to end serves them first.
    """
    global _unshown
    _unshown = file

    def stop(number: int, _frame: object) -> None:
        if not file.exists():
            leave(1)
        told.append(number)

    signal.signal(signal.SIGALRM, _ring)
    for number in STOP:
        signal.signal(number, stop)
    signal.setitimer(signal.ITIMER_REAL, _SHOWN_S)


def show() -> None:
    """Write the file that shows the program to probes: it serves, or is about to restart."""
    global _unshown
    if _unshown is not None:
        _unshown.touch()
        _unshown = None
        stop_alarm()


def _ring(*_: object) -> None:
    if _unshown is not None:
        _unshown.touch()


def stop_alarm() -> None:
    """Cancel the alarm of `_show_later`, unless a function has set its own handler."""
    if signal.getsignal(signal.SIGALRM) is _ring:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def begin_anew(sockets: Sequence[socket.socket], arguments: Sequence[str] = _ARGUMENTS) -> NoReturn:
    """Replace the process by the same program, started as this one was, with these arguments.

    It then listens on the first of `sockets`, and serves the connections that follow.
    """
    flush()
    show()
    for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        signal.setitimer(timer, 0)  # it would end the new program, which has no handler yet
    environment = dict(_STARTED_WITH)
    program = _STARTED_AS[: len(_STARTED_AS) - len(_ARGUMENTS)]
    try:
        for each in sockets:
            each.set_inheritable(True)
        if sockets:
            listener, *kept = (str(each.fileno()) for each in sockets)
            environment |= {_LISTENER: listener, _KEPT: ",".join(kept)}
        os.chdir(_STARTED_IN)
        os.umask(_UMASK)
        _replace(sys.executable, [*program, *arguments], environment)
    finally:
        leave(1)


def flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


class OneProcess:
    """A block that only the process which entered it leaves: a process forked in it ends instead.

    Otherwise two processes would answer one request. The forked process ends as a program does:
    with the status of ``sys.exit``, or with a traceback and 1.
    """

    def __enter__(self) -> OneProcess:
        self._here = os.getpid()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self.check(error)

    def check(self, error: BaseException | None = None) -> None:
        """Return in the process that entered the block; end any other process."""
        if os.getpid() != self._here:
            end(error)


def end(error: BaseException | None) -> NoReturn:
    """End as a program that raised `error` does, but without waiting for handlers' threads."""
    code = error.code if isinstance(error, SystemExit) else int(error is not None)
    try:
        if not isinstance(code, int | None):
            print(code, file=sys.stderr)
        elif error is not None and not isinstance(error, SystemExit):
            traceback.print_exception(error)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:  # a handler may have put anything there
        leave(code & 0xFF if isinstance(code, int) else int(code is not None))


def inherits() -> bool:
    """Return whether another program owns the listening socket and restarts this program."""
    return _LISTENER in _STARTED_WITH
