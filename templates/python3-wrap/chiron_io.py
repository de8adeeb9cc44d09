"""For handlers: outputs that leave a function before it ends, and streams.

    from chiron_io import emit, open_input, open_output

    def handle(req):
        emit("preview", shrunk(req))
        return converted(req)

    def handle(req):
        with open_input() as lines, open_output() as found:
            found.writelines(line for line in lines if b"error" in line)

What takes `preview` begins when that is emitted, and not when the function has ended. In a workflow
of buckets, ``emit("words", each, group=each[0])`` puts an object into the bucket `words`, as often
as it is called. What reads a stream runs at the same time as what writes it, where both can. A
handler that is a generator writes what it yields.

In an ordinary OpenFaaS function, `open_input` has the request and what is written to `open_output`
is the answer, all of it at the end; what is emitted goes nowhere. To use it there, copy this file
beside the handler.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import IO, Any, Protocol

#: What a handler answers.
OUTPUT = "output"


class Attached(Protocol):
    """What is behind the functions of this module while a handler runs."""

    def emit(self, name: str, value: Any, group: str | None) -> None:
        """As `emit` says."""

    def open_input(self, name: str | None) -> IO[bytes]:
        """As `open_input` says."""

    def open_output(self, name: str) -> IO[bytes]:
        """As `open_output` says."""


class _Ordinary:
    """Of a function that is called by itself, with Flask, as OpenFaaS's templates for Python do."""

    def emit(self, name: str, value: Any, group: str | None) -> None:
        """Nobody takes it."""

    def open_input(self, name: str | None) -> IO[bytes]:
        """The request."""
        import flask

        return io.BytesIO(flask.request.get_data())

    def open_output(self, name: str) -> IO[bytes]:
        """What becomes the answer, where it is to be that."""
        import flask

        written = _Written()

        @flask.after_this_request
        def answer(response: flask.Response) -> flask.Response:
            if name == OUTPUT:
                response.set_data(written.getvalue())
            return response

        return written


class _Written(io.BytesIO):
    """What is there still when it has been closed."""

    def close(self) -> None:
        """Keep it."""


_ORDINARY = _Ordinary()
_attached: ContextVar[Attached] = ContextVar("attached", default=_ORDINARY)


def emit(name: str, value: Any, group: str | None = None) -> None:
    """Send the output `name` now, and go on.

    To be called by the thread that `handle` runs in, or with its context (`contextvars`).

    Args:
        name: in a workflow of buckets a bucket that the function gives to, or one of the names that
            the workflow says it emits, by which triggers go.
        value: what `handle` could return; it must not be changed any more.
        group: what the trigger ``dynamic-group`` goes by, in place of the field in ``group_from``.

    Raises ValueError if it was emitted before. In a workflow of buckets a function may emit under
    a name as often as it likes; there it is raised where nothing takes the name.
    """
    _attached.get().emit(name, value, group)


def open_input(name: str | None = None) -> IO[bytes]:
    """A binary file to read a stream from, while it is written.

    Args:
        name: as the edge of the workflow has it: ``a``, or ``a#left``; it may be left out where
            there is one.

    Raises ValueError where there is no such stream. To read raises an error of the runtime where
    the writer has failed.
    """
    return _attached.get().open_input(name)


def open_output(name: str = OUTPUT) -> IO[bytes]:
    """A binary file to write the output `name` to; ``output`` is what `handle` answers, and what
    it returns is nothing then.

    What is written waits in a buffer until there are 64 KiB, or it is flushed; to write waits for
    those that read. It ends with `close`, or with the handler.

    Raises ValueError if it was opened or emitted before.
    """
    return _attached.get().open_output(name)


@contextmanager
def attached_to(attached: Attached) -> Iterator[None]:
    """Have `attached` behind these functions within the block."""
    before = _attached.set(attached)
    try:
        yield
    finally:
        _attached.reset(before)
