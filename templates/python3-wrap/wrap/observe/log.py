"""The log: what functions print, in lines that each begin with the function's name.

Behind the name is the execution that they printed it for, where the request said which.

Takes the place of ``sys.stdout`` and ``sys.stderr``. Which function prints is read from the call
stack, so that threads that a handler has started, and modules while they are imported, are known
too.
"""

from __future__ import annotations

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

#: A pipe takes up to so many bytes whole, whatever else writes into it (pipe(7), PIPE_BUF).
_WHOLE = select.PIPE_BUF
#: A longer line is broken: of-watchdog refuses to pass on more than 64 KiB.
_LONGEST = 1 << 15


#: How the line of an execution begins that has failed.
FAILED = "failed with "

#: What each thread works for.
_current = threading.local()


def mark(execution: str) -> None:
    """Mark what this thread prints from now on as that of `execution`; empty for no mark."""
    _current.execution = execution


def marked() -> str:
    """What this thread works for: see `mark`."""
    return getattr(_current, "execution", "")


class Log(io.TextIOBase):
    """A text stream whose lines go to a descriptor, each after its function's name.

    A thread's line goes out when it is complete, when it is flushed, or with the end of its task.

    Parameters
    ----------
    descriptor
        Where to; it is this object's alone, as handlers may close the standard ones.
    """

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._begun = threading.local()
        self.buffer = _Bytes(self)

    def write(self, text: str) -> int:
        """Take in `text`: part of a line, or several."""
        begun = self._begun
        if not getattr(begun, "pieces", None):
            begun.pieces, begun.size, begun.name = [], 0, _writer()
        begun.pieces.append(text)
        begun.size += len(text)
        if "\n" in text or begun.size > _LONGEST:
            whole = "".join(begun.pieces)
            end = whole.rfind("\n") + 1 or len(whole) // _LONGEST * _LONGEST
            begun.pieces = [whole[end:]] if end < len(whole) else []
            begun.size = len(whole) - end
            self.emit(begun.name, whole[:end])
        return len(text)

    def flush(self) -> None:
        """End the line that this thread has begun."""
        pieces = getattr(self._begun, "pieces", None)
        if pieces:
            self._begun.pieces = []
            self.emit(self._begun.name, "".join(pieces))

    def emit(self, function: str | None, text: str, execution: str | None = None) -> None:
        """Write the lines of `text` as `function`'s. A log without a reader is no failure.

        They are of the `execution` that this thread works for where none is given.
        """
        if execution is None:
            execution = marked()
        origin = f"{function} {execution}" if execution else function
        prefix = f"[{origin}] ".encode() if function else b""
        lines = text.encode(errors=self.errors).splitlines()
        with contextlib.suppress(OSError):
            for piece in _pieces(_prefixed(prefix, lines)):
                view = memoryview(piece)
                while view:
                    view = view[os.write(self._descriptor, view) :]

    def fileno(self) -> int:
        """The descriptor that the lines go to."""
        return self._descriptor

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        """Flush only: the log belongs to all functions."""
        self.flush()

    def reconfigure(self, **_: object) -> None:
        """Nothing to choose."""


class _Bytes(io.RawIOBase):
    """``sys.stdout.buffer``."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def write(self, data: object) -> int:
        octets = bytes(memoryview(data))  # type: ignore[arg-type]
        self._log.write(octets.decode(errors="backslashreplace"))
        return len(octets)

    def flush(self) -> None:
        self._log.flush()

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        self.flush()


def install() -> None:
    """Prefix what is printed from now on; what goes to the descriptors directly stays as it is."""
    for name in ("stdout", "stderr"):
        stream: TextIO | None = getattr(sys, name)
        if stream is not None:
            setattr(sys, name, Log(os.dup(stream.fileno())))


def report(function: str, error: BaseException) -> None:
    """Write the traceback of `error` to stderr as if `function` had."""
    with contextlib.suppress(Exception):  # little memory may be left
        tell(function, "".join(traceback.format_exception(error)))


def tell(function: str, text: str) -> None:
    """Write the lines of `text` to stderr as if `function` had, unless it has replaced that."""
    if isinstance(sys.stderr, Log):
        sys.stderr.emit(function, text)


def pass_on(line: bytes) -> None:
    """Write a line that has its function's name already."""
    if isinstance(sys.stderr, Log):
        sys.stderr.emit(None, line.decode(errors="backslashreplace"))


def failed(function: str, execution: str, code: str, message: str) -> None:
    """Write to stderr, in one line, why an execution has no answer but an error."""
    if isinstance(sys.stderr, Log):
        sys.stderr.emit(function, f"{FAILED}{code}: {' '.join(message.split())}", execution)


def end_lines() -> None:
    """Write out what this thread has printed so far."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # a handler may have put anything there
            stream.flush()


def _writer() -> str | None:
    """The function whose code is nearest in the call stack."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        function = function_of(frame.f_globals)
        if function is not None:
            return function
        frame = frame.f_back
    return None


def _prefixed(prefix: bytes, lines: Iterable[bytes]) -> Iterator[bytes]:
    for line in lines:
        for start in range(0, max(1, len(line)), _LONGEST):
            yield prefix + line[start : start + _LONGEST] + b"\n"


def _pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines put together as far as a pipe takes them whole."""
    piece = b""
    for line in lines:
        if piece and len(piece) + len(line) > _WHOLE:
            yield piece
            piece = b""
        piece += line
    if piece:
        yield piece
