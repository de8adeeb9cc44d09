"""The log: the output of functions, in lines that each begin with the function's name.

The execution follows the name, if the request named it.

The log replaces ``sys.stdout`` and ``sys.stderr``. The call stack shows which function prints. So
the output of threads that a handler has started, and of modules during import, is assigned too.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import select
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import TextIO

from wrap.functions.namespace import function_of

#: Writes of up to so many bytes to a pipe are atomic (pipe(7), PIPE_BUF).
_WHOLE = select.PIPE_BUF
#: A longer line is split: of-watchdog does not pass on more than 64 KiB.
_LONGEST = 1 << 15
#: The error handler for halves of surrogate pairs, which UTF-8 cannot encode.
_ERRORS = "backslashreplace"


#: The beginning of the line of a failed execution.
FAILED = "failed with "

#: The execution that each thread works for.
_current = threading.local()


def mark(execution: str) -> None:
    """Mark this thread's output from now on with `execution`; empty for no mark."""
    _current.execution = execution


def marked() -> str:
    """Return the mark of this thread; see `mark`."""
    return getattr(_current, "execution", "")


class _Begun(threading.local):
    """The line that each thread has begun."""

    line: _Line | None = None


class Log(io.TextIOBase):
    """A text stream whose lines go to a descriptor, each after its function's name.

    A thread's line is written when it is complete, when it is flushed, or when the task or the
    thread ends.

    Args:
        descriptor: the destination; it belongs to this object alone, as handlers may close the
            standard descriptors.
        name: Python's name of the stream.
        errors: which texts it refuses: an error handler of `codecs`.
    """

    mode = "w"
    line_buffering = True
    write_through = True

    def __init__(self, descriptor: int, name: str, errors: str = _ERRORS) -> None:
        self.name = name
        self._usual = ("utf-8", errors)
        #: Function -> the encoding and the errors that it has set for itself.
        self._set: dict[str | None, tuple[str, str]] = {}
        self._descriptor = descriptor
        self._begun = _Begun()
        self.buffer = _Bytes(self)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._set.get(_writer(), self._usual)[0]

    @property
    def errors(self) -> str:  # type: ignore[override]
        return self._set.get(_writer(), self._usual)[1]

    def write(self, text: str) -> int:
        """Add `text`: part of a line, or several lines.

        Raises UnicodeEncodeError if the function's own stream would refuse its text.
        """
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        own = self._set and self._set.get(_writer())
        try:
            data = text.encode(*own) if own else text.encode()
        except UnicodeEncodeError:
            if own or (_writer() is not None):
                text.encode(*(own or self._usual))
            data = text.encode(errors=_ERRORS)
        self.put(data)
        return len(text)

    def put(self, data: bytes) -> None:
        line = self._begun.line
        if line is None or not line.goes_on:
            line = self._begun.line = _Line(self)
        line.add(data)

    def flush(self) -> None:
        """End the line that this thread has begun."""
        line = self._begun.line
        if line is not None:
            line.end()

    def emit(self, function: str | None, data: bytes, execution: str = "") -> None:
        """Write the lines of `data` as the function's. A missing reader of the log is no error."""
        origin = f"{function} {execution}" if execution else function
        prefix = f"[{origin}] ".encode() if function else b""
        with contextlib.suppress(OSError):
            for piece in _pieces(_prefixed(prefix, _lines(data))):
                _write_all(self._descriptor, piece)

    def fileno(self) -> int:
        return self._descriptor

    def writable(self) -> bool:
        return True

    def detach(self) -> _Bytes:  # type: ignore[override]
        """Return the stream of bytes; this stream stays, as it belongs to all functions."""
        self.flush()
        return self.buffer

    def close(self) -> None:
        """Flush only: the log belongs to all functions."""
        self.flush()

    def reconfigure(
        self,
        *,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        line_buffering: bool | None = None,
        write_through: bool | None = None,
    ) -> None:
        """Set how the calling function's text becomes bytes; the other settings have no effect."""
        codecs.lookup(encoding or self.encoding)
        errors = errors or ("strict" if encoding else self.errors)  # as `io.TextIOWrapper` does
        self._set[_writer()] = (encoding or self.encoding, errors)


class _Line:
    """A line that a thread has begun; it is written at the latest when the thread ends.

    It belongs to the process that began it, as a fork copies it.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._process = os.getpid()
        self._function, self._execution = _writer(), marked()
        self._pieces: list[bytes] = []
        self._size = 0

    @property
    def goes_on(self) -> bool:
        """Whether it has begun in this process, and not ended."""
        return bool(self._pieces) and self._process == os.getpid()

    def add(self, data: bytes) -> None:
        """Add data, and write the complete lines."""
        self._pieces.append(data)
        self._size += len(data)
        if b"\n" in data or self._size > _LONGEST:
            whole = b"".join(self._pieces)
            end = whole.rfind(b"\n") + 1 or len(whole) // _LONGEST * _LONGEST
            self._pieces = [whole[end:]] if end < len(whole) else []
            self._size = len(whole) - end
            self._log.emit(self._function, whole[:end], self._execution)

    def end(self) -> None:
        if self.goes_on:
            pieces, self._pieces = self._pieces, []
            self._log.emit(self._function, b"".join(pieces), self._execution)

    __del__ = end


class _Bytes(io.RawIOBase):
    """``sys.stdout.buffer``."""

    mode = "wb"

    def __init__(self, log: Log) -> None:
        self._log = log
        self.name = log.name

    def write(self, data: object) -> int:
        octets = bytes(memoryview(data))  # type: ignore[arg-type]
        self._log.put(octets)
        return len(octets)

    def flush(self) -> None:
        self._log.flush()

    def fileno(self) -> int:
        return self._log.fileno()

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        self.flush()


#: The log for stderr, even if handlers replace ``sys.stderr``.
_stderr: Log | None = None


def install() -> None:
    """Prefix what is printed from now on; direct writes to the descriptors are not changed."""
    global _stderr
    for name in ("stdout", "stderr"):
        stream: TextIO | None = getattr(sys, name)
        if stream is not None:
            descriptor, errors = os.dup(stream.fileno()), stream.errors or _ERRORS
            setattr(sys, name, Log(descriptor, f"<{name}>", errors))
    _stderr = sys.stderr if isinstance(sys.stderr, Log) else None


def report(function: str, error: BaseException) -> None:
    """Write the traceback of `error` to stderr as if `function` had, unless stderr is replaced."""
    with contextlib.suppress(Exception):  # little memory may be left
        if isinstance(sys.stderr, Log):
            tell(function, "".join(traceback.format_exception(error)))


def tell(function: str, text: str) -> None:
    """Write the lines of `text` to stderr as if `function` had."""
    if _stderr is not None:
        _stderr.emit(function, text.encode(errors=_ERRORS), marked())


def pass_on(line: bytes) -> None:
    """Write a line that already has its function's name."""
    if _stderr is not None:
        _stderr.emit(None, line)


def failed(function: str, execution: str, code: str, message: str) -> None:
    """Write to stderr, in one line, the error with which an execution has failed."""
    if _stderr is not None:
        line = f"{FAILED}{code}: {' '.join(message.split())}"
        _stderr.emit(function, line.encode(errors=_ERRORS), execution)


def end_lines() -> None:
    """Write out this thread's output so far."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # noqa: S112 (a handler may have put anything there)
            continue


def end_own_lines() -> None:
    """Write out this thread's lines in the log, before a call ends its process."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, Log):
            stream.flush()


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:  # a function has made the pipe non-blocking, and it is full
            room = select.poll()
            room.register(descriptor, select.POLLOUT)
            room.poll()


def _writer() -> str | None:
    """Return the function whose code is nearest in the call stack."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        function = function_of(frame.f_globals)
        if function is not None:
            return function
        frame = frame.f_back
    return None


def _lines(data: bytes) -> list[bytes]:
    r"""Return the lines of `data`, split as by of-watchdog: at \n or \r\n.

    >>> _lines(b"10 %\r20 %\r\n\nend")
    [b'10 %\r20 %', b'', b'end']
    """
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix(b"\r") for line in lines]


def _prefixed(prefix: bytes, lines: Iterable[bytes]) -> Iterator[bytes]:
    for line in lines:
        for start in range(0, max(1, len(line)), _LONGEST):
            yield prefix + line[start : start + _LONGEST] + b"\n"


def _pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Join lines into pieces that a pipe accepts atomically."""
    piece = b""
    for line in lines:
        if piece and len(piece) + len(line) > _WHOLE:
            yield piece
            piece = b""
        piece += line
    if piece:
        yield piece
