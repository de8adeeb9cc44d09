"""A command in the place of a handler: its input on stdin, its output what it writes to stdout.

Both are files in memory, no pipes: the program reads and writes as much as it likes in any order,
nothing waits for anything but its end, and it may seek in them, as what writes an MP4 does. A
thread waits for it without the GIL, and passes on to the log what it says on stderr.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from wrap import log
from wrap.errors import TaskError
from wrap.zygote import ending

#: What in a word of a command stands for a file's path, in place of stdin or stdout.
_IN, _OUT = "{in}", "{out}"
_PLACES = re.compile("|".join(map(re.escape, (_IN, _OUT))))
#: How long a command may go on after its thread was cancelled, in milliseconds.
_LOOK_MS = 250
#: What a pipe holds, and so the most that is left to be read of a program that has ended.
_PIPE = 1 << 16
#: Of what it said last an error tells so many lines and characters; so many bytes are looked at.
_LINES_SHOWN, _SHOWN, _TAIL = 3, 500, 1 << 12


class Command:
    """Runs a program for each input, in the function's folder, with no shell.

    Parameters
    ----------
    function
        Whose command it is.
    words
        The program and its arguments.
    folder
        The function's.

    Raises
    ------
    ImportError
        There is no such program.
    """

    def __init__(self, function: str, words: Sequence[str], folder: Path) -> None:
        program = words[0]
        if not shutil.which(folder / program if os.sep in program else program):
            raise ImportError(
                f"function {function}: no program {program} is installed here: name its Debian "
                "package under build_args, ADDITIONAL_PACKAGE, in stack.yaml, or have the program "
                f"in the function's folder, executable, and call it ./{Path(program).name}"
            )
        self._function = function
        self._words = words
        self._folder = folder
        self._takes_file, self._gives_file = (
            any(place in word for word in words) for place in (_IN, _OUT)
        )
        # A further process has its own group, which is killed with all in it; the server has not.
        self._server = os.getpid()

    def __call__(self, given: bytes | memoryview) -> bytes:
        """What it answers to `given`. Raises TaskError, ``exited``, where it fails."""
        with _file(given) as source, _file() as target:
            paths = {_IN: _path(source), _OUT: _path(target)}
            words = [_PLACES.sub(lambda found: paths[found[0]], word) for word in self._words]
            said = _Said(self._function)
            with subprocess.Popen(
                words,
                cwd=self._folder,
                stdin=subprocess.DEVNULL if self._takes_file else source,
                stdout=subprocess.PIPE if self._gives_file else target,
                stderr=subprocess.STDOUT if self._gives_file else subprocess.PIPE,
                process_group=0 if os.getpid() == self._server else None,
            ) as process:
                try:
                    said.follow(process)
                finally:
                    self._end(process)
            if process.returncode:
                how = f"{shlex.join(self._words)} {ending(process.returncode)}"
                raise TaskError("exited", f"{how}: {said.last or 'it said nothing on stderr'}")
            with open(target, "rb", buffering=0, closefd=False) as output:
                output.seek(0)
                return output.read()

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Kill it unless it has ended, and what it started, while its id cannot be another's."""
        if os.getpid() == self._server:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()


class _Said:
    """What a program says beside its output: goes to the log line by line, and its end is kept."""

    def __init__(self, function: str) -> None:
        self._function = function
        self._tail = self._begun = b""

    def follow(self, process: subprocess.Popen[bytes]) -> None:
        """Take in what it says until it has ended."""
        pipe = process.stderr or process.stdout
        assert pipe is not None  # noqa: S101 (one of them is a pipe)
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        with _closing(os.pidfd_open(process.pid)) as ended:
            poll.register(ended, select.POLLIN)
            ready = dict[int, int]()
            while ended not in ready:
                ready = dict(poll.poll(_LOOK_MS))
                if pipe.fileno() in ready and not self._take(os.read(pipe.fileno(), _PIPE)):
                    poll.unregister(pipe)
        if self._begun:
            self._log(self._begun)

    def _take(self, data: bytes) -> bool:
        self._tail = (self._tail + data)[-_TAIL:]
        whole, newline, self._begun = (self._begun + data).rpartition(b"\n")
        if len(self._begun) > _PIPE:
            whole, self._begun = whole + newline + self._begun, b""
        if whole:
            self._log(whole)
        return bool(data)

    def _log(self, lines: bytes) -> None:
        log.tell(self._function, lines.decode(errors="replace"))

    @property
    def last(self) -> str:
        """Its last lines, in one."""
        lines = map(str.strip, self._tail.decode(errors="replace").splitlines())
        return " | ".join(list(filter(None, lines))[-_LINES_SHOWN:])[-_SHOWN:]


@contextlib.contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _file(content: bytes | memoryview = b"") -> Iterator[int]:
    """The descriptor of a file in memory, at its beginning."""
    with _closing(os.memfd_create("chiron-command")) as descriptor:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor


def _path(descriptor: int) -> str:
    """By what any process of this user opens it, also one that a script starts."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"
