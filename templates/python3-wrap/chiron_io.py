"""For handlers: emit outputs before the function ends, and read or write streams.

    from chiron_io import emit, open_input, open_output

    def handle(req):
        emit("preview", shrunk(req))
        return converted(req)

    def handle(req):
        with open_input() as lines, open_output() as found:
            found.writelines(line for line in lines if b"error" in line)

Tasks that take `preview` begin when it is emitted, before the function has ended. In a workflow of
buckets, ``emit("words", each, group=each[0])`` puts an object into the bucket `words`; it may be
called any number of times. The reader and the writer of a stream run at the same time if both can.
A handler that is a generator writes the pieces that it yields.

In an ordinary OpenFaaS function, `open_input` returns the request. The bytes written to
`open_output` become the answer, sent as a whole at the end. Emitted outputs are dropped. To use the
module there, copy this file beside the handler, and import from `.chiron_io`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import IO, Any, Protocol

#: The name of the output that is the handler's answer.
OUTPUT = "output"


class Attached(Protocol):
    """The implementation behind the functions of this module while a handler runs."""

    def emit(self, name: str, value: Any, group: str | None) -> None:
        """Implement `emit`."""

    def open_input(self, name: str | None) -> IO[bytes]:
        """Implement `open_input`."""

    def open_output(self, name: str) -> IO[bytes]:
        """Implement `open_output`."""


class _Ordinary:
    """Used when Flask calls the function directly, as OpenFaaS's Python templates do."""

    def emit(self, name: str, value: Any, group: str | None) -> None:
        """Drop the value."""

    def open_input(self, name: str | None) -> IO[bytes]:
        """Return the body of the request."""
        import flask

        return io.BytesIO(flask.request.get_data())

    def open_output(self, name: str) -> IO[bytes]:
        """Return a file whose content becomes the answer if `name` is ``output``."""
        import flask

        written = _Written()

        @flask.after_this_request
        def answer(response: flask.Response) -> flask.Response:
            if name == OUTPUT:
                response.set_data(written.getvalue())
            return response

        return written


class _Written(io.BytesIO):
    """A file whose content stays readable after `close`."""

    def close(self) -> None:
        """Keep the content."""


_ORDINARY = _Ordinary()
_attached: ContextVar[Attached] = ContextVar("attached", default=_ORDINARY)


def emit(name: str, value: Any, group: str | None = None) -> None:
    """Send the output `name` now; the handler continues.

    Call it in the thread that runs `handle`, or with that thread's context (`contextvars`).

    Args:
        name: in a workflow of buckets, a bucket that the function fills; else a name that the
            workflow declares as emitted, on which triggers depend.
        value: any value that `handle` could return; do not change it afterwards.
        group: the group for the trigger ``dynamic-group``; it replaces the field in ``group_from``.

    Raises ValueError if the output was emitted before. In a workflow of buckets a function may emit
    a name any number of times; there, ValueError means that nothing takes the name.
    """
    _attached.get().emit(name, value, group)


def open_input(name: str | None = None) -> IO[bytes]:
    """Return a binary file that reads a stream while the stream is written.

    Args:
        name: the name in the workflow's edge, such as ``a`` or ``a#left``; it may be omitted if
            there is only one stream.

    Raises ValueError if there is no such stream. If the writer failed, reading raises an error of
    the runtime.
    """
    return _attached.get().open_input(name)


def open_output(name: str = OUTPUT) -> IO[bytes]:
    """Return a binary file that writes the output `name`.

    ``output`` is the answer of `handle`, whose return value is then ignored. Bytes wait in a buffer
    until there are 64 KiB or the file is flushed. Writing waits for the readers. The stream ends
    with `close`, or when the handler ends.

    Raises ValueError if the output was opened or emitted before.
    """
    return _attached.get().open_output(name)


@contextmanager
def attached_to(attached: Attached) -> Iterator[None]:
    """Make `attached` the implementation of these functions within the block."""
    before = _attached.set(attached)
    try:
        yield
    finally:
        _attached.reset(before)
