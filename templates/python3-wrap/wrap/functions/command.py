"""A command as a handler: it reads its input from stdin and writes its output to stdout.

Both are files in memory. So the program may read and write in any order, and may seek, as writers
of MP4 do; the wrap waits only for its end. Streams are pipes, each with a thread that fills or
empties it. The task's thread waits for the program without the GIL and passes stderr to the log.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from chiron_io import OUTPUT

from wrap.core.errors import TaskError
from wrap.functions.function_runner import FunctionRunner, Place
from wrap.functions.public import PACKAGE
from wrap.functions.remote import headers_of
from wrap.observe import log
from wrap.pipes.frames import BUFFER
from wrap.pipes.reader import Reader, WrittenStream
from wrap.values.value import Object, shown
from wrap.workers.fork_server import ending, kill
from wrap.workers.reaper import Program

if TYPE_CHECKING:
    from wrap.core.wrap_spec import Seen
    from wrap.functions.task_io import TaskIO

#: Placeholders for paths in a command's words: files in place of stdin and stdout; with a name, a
#: stream or another output.
_PLACES = re.compile(r"\{(in|out)(?::([^{}]+))?\}")
#: The server process. A worker process has a process group of its own, which is killed as a whole.
_SERVER = os.getpid()
#: The longest time for which a command survives the cancellation of its thread, in milliseconds.
_LOOK_MS = 250
#: The capacity of a pipe in bytes: the most that is unread when a program has ended.
_PIPE = 1 << 16
#: The end of stderr in an error message: lines, characters, and bytes that are kept for it.
_LINES_SHOWN, _SHOWN, _TAIL = 3, 500, 1 << 12


#: WSGI variable -> variable of the classic watchdog, unless empty; headers are converted by rule.
_VARIABLES = {
    "REQUEST_METHOD": "Http_Method",
    "QUERY_STRING": "Http_Query",
    "PATH_INFO": "Http_Path",
    "CONTENT_TYPE": "Http_Content_Type",
}


class Command(FunctionRunner):
    """Runs a program for each input, in the function's folder, with no shell."""

    uses_io = True
    starts_programs = True

    def __init__(self, name: str, style: str, place: Place) -> None:
        super().__init__(name, style, place)
        if not (words := place.wrap.commands.get(name)):
            raise ValueError(f"function {name}: its style is {style}, and it has no command")
        program, folder = words[0], place.folder / name / PACKAGE
        if not shutil.which(folder / program if os.sep in program else program):
            raise ImportError(
                f"function {name}: no program {program} is installed here: name its Debian "
                "package under build_args, ADDITIONAL_PACKAGE, in stack.yaml, or have the program "
                f"in the function's folder, executable, and call it ./{Path(program).name}"
            )
        self._words = words
        self._folder = folder
        places = [found.groups() for word in words for found in _PLACES.finditer(word)]
        self._places = dict.fromkeys(places)
        self._takes_file, self._gives_file = (("in", None) in places, ("out", None) in places)

    def arguments(
        self, given: Object, task_io: TaskIO | None, trace: Mapping[str, str]
    ) -> tuple[Any, ...]:
        """Return the input, the task's streams, and the environment variables."""
        return given, task_io, _variables(given, trace)

    def call(self, given: Object, task_io: TaskIO | None, variables: Mapping[str, str]) -> bytes:
        """Run the program on `given` and return its output. Raises TaskError, ``exited``."""
        with _Files(task_io) as files:
            paths = {place: files.path(*place) for place in self._places if place[1]}
            source, target = files.source(self._on_stdin(given, task_io)), files.target(OUTPUT)
            paths |= {("in", None): _path(source), ("out", None): _path(target)}
            words = [_PLACES.sub(lambda found: paths[found.groups()], word) for word in self._words]
            said = _Said(self.name)
            watched = task_io is not None and task_io.watched
            run = _Child if watched else Program
            ours, theirs = os.pipe()
            with _closing(ours):
                with _closing(theirs):
                    program = run(
                        words,
                        self._folder,
                        variables,
                        (
                            files.nothing() if self._takes_file else source,
                            theirs if self._gives_file else target,
                            theirs,
                        ),
                    )
                files.flow(program.kill)
                try:
                    said.follow(ours, program, files.has_answered)
                finally:
                    program.kill()
                    status = program.wait()
            files.finish()
            if status:
                how = f"{shlex.join(self._words)} {ending(status)}"
                raise TaskError("exited", f"{how}: {said.last or 'it said nothing on stderr'}")
            return files.answer()

    def answer(self, value: Any, seen: Seen) -> Object:
        """Return the bytes of stdout without a content type."""
        return Object(value)

    def _on_stdin(self, given: Object, task_io: TaskIO | None) -> Object | Reader | WrittenStream:
        """Return the first stream without a placeholder in the command, else the input."""
        for name in task_io.inputs if task_io is not None else ():
            if ("in", name) not in self._places and task_io is not None:
                return task_io.given(name)
        return given


def _variables(given: Object, trace: Mapping[str, str]) -> dict[str, str]:
    """Return the command's variables; the classic watchdog's if its input is the request.

    Trace headers are variables in capitals, as programs expect them.
    """
    variables = {name.upper(): value for name, value in trace.items()}
    if isinstance(given.head, dict):
        environ = shown(given.head)
        seen = {name: environ[key] for key, name in _VARIABLES.items() if environ.get(key)}
        for name, value in headers_of(environ, _first).items():
            seen["Http_" + "_".join(map(str.capitalize, name.split("-")))] = value
        seen["Http_ContentLength"] = seen["Http_Content_Length"] = str(len(given.view()))
        # A WSGI text has a character for each byte.
        variables |= {name: os.fsdecode(text.encode("latin-1")) for name, text in seen.items()}
    return {name: value for name, value in variables.items() if "\0" not in value}


def _first(name: str, first: str, second: str) -> str:
    """Return the classic watchdog's value of a repeated header."""
    return first


class _Child:
    """A program as a child of this process, for measured runs: `Program` for observers.

    Processes that it leaves in other sessions keep running.
    """

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        variables: Mapping[str, str],
        descriptors: Sequence[int],
    ) -> None:
        stdin, stdout, stderr = descriptors
        self._process = subprocess.Popen(
            words,
            cwd=folder,
            env={**os.environ, **variables},
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            process_group=0 if os.getpid() == _SERVER else None,
        )
        self._ended = os.pidfd_open(self._process.pid)

    def fileno(self) -> int:
        return self._ended

    def kill(self) -> None:
        """Kill the program and its own group, if any, before its pid can be reused."""
        kill(self._process.pid)

    def wait(self) -> int:
        os.close(self._ended)
        return self._process.wait()


class _Said:
    """Passes a program's stderr to the log line by line, and keeps its end."""

    def __init__(self, function: str) -> None:
        self._function = function
        self._tail = self._begun = b""

    def follow(self, pipe: int, program: _Child | Program, looked: Callable[[], bool]) -> None:
        """Read stderr until the program has ended; poll `looked` until it returns True.

        The interval grows with the run time: a hundredth of it is precise enough.
        """
        begun, found = time.monotonic(), False
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        poll.register(program, select.POLLIN)
        ready = dict[int, int]()
        while program.fileno() not in ready:
            found = found or looked()
            passed_ms = int(10 * (time.monotonic() - begun))
            ready = dict(poll.poll(_LOOK_MS if found else min(_LOOK_MS, 1 + passed_ms)))
            if pipe in ready and not self._take(os.read(pipe, _PIPE)):
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
        lines = map(str.strip, self._tail.decode(errors="replace").splitlines())
        return " | ".join(list(filter(None, lines))[-_LINES_SHOWN:])[-_SHOWN:]


class _Files:
    """The inputs and outputs of a program, by descriptor: files in memory, or pipes of streams."""

    def __init__(self, task_io: TaskIO | None) -> None:
        self._io = task_io
        self._own, self._pipes = ExitStack(), ExitStack()
        self._outputs = dict[str, int]()
        self._pumps = list[Callable[[], None]]()
        self._threads = list[threading.Thread]()
        self._error: BaseException | None = None

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipes.close()
        self._own.close()

    def path(self, kind: str, name: str) -> str:
        """Return the path of an input stream (``in``) or an output (``out``)."""
        if kind == "out":
            return _path(self.target(name))
        if self._io is None or name not in self._io.inputs:
            what = f"no stream is called {name}" if self._io is None else self._io.unknown(name)
            raise TaskError("no-stream", what)
        return _path(self.source(self._io.given(name)))

    def has_answered(self) -> bool:
        """Whether its answer has begun, or the task is not watched."""
        answer = self._outputs.get(OUTPUT)
        if answer is None or self._io is None or not self._io.watched:
            return True
        if os.fstat(answer).st_size:
            self._io.wrote()
            return True
        return False

    def source(self, given: Object | Reader | WrittenStream) -> int:
        if isinstance(given, Object):
            return self._file(given.view())
        theirs, ours = os.pipe()
        self._pipes.callback(os.close, theirs)
        self._pumps.append(partial(_pour, given, ours))
        return theirs

    def nothing(self) -> int:
        """Return an empty stdin for a program that opens its input by path."""
        descriptor = os.open(os.devnull, os.O_RDONLY)
        self._own.callback(os.close, descriptor)
        return descriptor

    def target(self, name: str) -> int:
        if self._io is None or not self._io.is_read(name):
            self._outputs[name] = self._file()
            return self._outputs[name]
        ours, theirs = os.pipe()
        self._own.callback(os.close, ours)
        self._pipes.callback(os.close, theirs)
        self._pumps.append(partial(_draw, ours, self._io.open_output(name)))
        return theirs

    def flow(self, failed: Callable[[], None]) -> None:
        """Start threads that fill and empty the pipes; call `failed` on an error."""
        for pump in self._pumps:
            thread = threading.Thread(target=self._pump, args=(pump, failed), daemon=True)
            thread.start()
            self._threads.append(thread)

    def finish(self) -> None:
        """Drain the pipes after the program's end. Raises the first error of a pipe."""
        self._pipes.close()
        for thread in self._threads:
            thread.join()
        if self._error is not None:
            raise self._error

    def answer(self) -> bytes:
        """Return its answer, and emit its other outputs."""
        outputs = dict(self._outputs)
        answer = outputs.pop(OUTPUT, None)
        for name, descriptor in outputs.items():
            if self._io is not None:
                self._io.emit(name, _content(descriptor))
        return b"" if answer is None else _content(answer)

    def _file(self, content: bytes | memoryview = b"") -> int:
        descriptor = os.memfd_create("chiron-command")
        self._own.callback(os.close, descriptor)
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor

    def _pump(self, pump: Callable[[], None], failed: Callable[[], None]) -> None:
        try:
            pump()
        except BaseException as error:
            self._error = error
            failed()


def _pour(given: Reader | WrittenStream, pipe: int) -> None:
    """Copy a stream into a pipe until its reader closes it."""
    with contextlib.suppress(BrokenPipeError), open(pipe, "wb", buffering=0) as file:
        shutil.copyfileobj(given, file, BUFFER)


def _draw(pipe: int, file: IO[bytes]) -> None:
    """Copy a pipe into an output; the end of the task closes the output."""
    while data := os.read(pipe, BUFFER):
        file.write(data)


def _content(descriptor: int) -> bytes:
    with open(descriptor, "rb", buffering=0, closefd=False) as file:
        file.seek(0)
        return file.read()


def _path(descriptor: int) -> str:
    """Return a path by which any process of this user can open the descriptor."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"


@contextlib.contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)
