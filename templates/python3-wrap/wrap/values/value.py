"""Objects: immutable values that tasks exchange, bytes with a content type.

An object keeps the form in which it came, and is converted only when another form is requested. A
text that a handler returns is the very same text that the next handler in its process gets.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import sys
from collections.abc import Sequence
from typing import Any

from wrap.net.framing import Unsent, unsent
from wrap.values import quick_json
from wrap.values.disk import Spilled
from wrap.values.in_json import InJson, to_json
from wrap.values.shared_memory import Shared

JSON, TEXT, BYTES = "application/json", "text/plain; charset=utf-8", "application/octet-stream"
#: Objects of at least so many bytes are sent to other processes as shared memory.
SHARED_FROM = 1 << 17
#: The value of an object whose bytes only a store has.
_MISSING = bytearray()
#: Answers of up to so many bytes are parsed to find their content type.
_PARSED = 1 << 16
#: The characters that a JSON string must escape; line ends and quotes are the likeliest.
_ESCAPED = ("\n", '"', "\\", *map(chr, range(32)))
#: The coding of an ASCII text.
_ASCII = "ascii"
#: Values with their own methods for reading.
_STORED = (Shared, Spilled)
#: The index of the head in an object's description.
_HEAD = 3
#: The prefix of headers that wraps and our clients send each other.
_OURS = "HTTP_X_CHIRON_"
#: The key of a request that is another task's output, whose producer set no content type.
_UNTYPED = f"{_OURS}UNTYPED"
#: The key of a request's header fields as they came, if WSGI leaves one out or joins some.
FIELDS = "chiron.fields"
#: The WSGI environment of a request, or the status and headers of an answer.
Head = dict[str, Any] | tuple[str, list[tuple[str, str]]] | None


class Object:
    """An immutable value.

    Args:
        value: bytes, or a text that stands for its UTF-8.
        content_type: empty if it is unknown.
        stored: the name under which a store has it, which is sent to other wraps instead of the
            bytes; empty if no store has it.
        head: the parts of its HTTP message besides body and content type; None if there are none.
    """

    __slots__ = ("_value", "content_type", "head", "stored")

    def __init__(
        self,
        value: str | bytes | bytearray | memoryview | Shared,
        content_type: str = "",
        stored: str = "",
        head: Head = None,
    ) -> None:
        self._value: str | bytes | bytearray | memoryview | Shared | Spilled = value
        self.content_type = content_type
        self.stored = stored
        self.head = head

    @property
    def missing(self) -> bool:
        """Whether only its name has arrived, and the store has its bytes."""
        return self._value is _MISSING

    def fill(self, value: bytes) -> None:
        self._value = value

    @property
    def size(self) -> int:
        """Its size: bytes, or characters of a text."""
        return len(self._value)

    @property
    def memory(self) -> int:
        """The bytes of its value in memory: a text may take four for each character."""
        value = self._value
        return sys.getsizeof(value) if isinstance(value, str) else len(value)

    def spill(self, value: Spilled) -> None:
        """Replace the value by its copy on disk. Forms that others have got stay in memory."""
        self._value = value

    def text(self, errors: str = "replace") -> str:
        """Return it as a text; `errors` handles invalid UTF-8, as in `bytes.decode`.

        Flask also replaces it in the text that a handler of python3-flask gets.
        """
        value = self._value
        if isinstance(value, str):
            return value
        try:
            text = value.text() if isinstance(value, _STORED) else str(value, "utf-8")
        except UnicodeDecodeError:
            return str(self.view(), "utf-8", errors)
        if not isinstance(value, _STORED):
            self._replace(value, text)
        return text

    def in_json(self) -> InJson:
        """Return the JSON value for it, from which its bytes can be restored."""
        try:
            return self.text("strict")
        except UnicodeDecodeError:
            return to_json(self.view())

    def data(self) -> bytes:
        value = self._value
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, _STORED):
            return value.data()
        if isinstance(value, bytes):
            return value
        data = bytes(value)
        self._replace(value, data)
        return data

    def view(self) -> bytes | memoryview:
        """Return its bytes for reading or sending; only a text is copied."""
        value = self._value
        if isinstance(value, _STORED):
            return value.view()
        return value.encode() if isinstance(value, str) else memoryview(value)

    def described(self) -> tuple[list[Any], Unsent]:
        """Return its description and its frame, for another wrap.

        If a store has it, the description has its name and the frame is empty. A large ASCII text
        is described as ASCII, as checking takes 7 ms for 100 MB.
        """
        if stored := self.stored:  # which another thread may set just now
            return self.said(stored), ""
        value = self._value
        if len(value) >= SHARED_FROM and (
            value.is_ascii
            if isinstance(value, Shared)
            else isinstance(value, str) and value.isascii()
        ):
            return self.said("", _ASCII), self.unsent()
        return self.said(), self.unsent()

    def said(self, stored: str = "", coding: str = "") -> list[Any]:
        """Return its description, up to the last field that is not empty."""
        if isinstance(self.head, dict):
            return [self.content_type, stored, coding, shown(self.head)]
        if self.head is not None:
            return [self.content_type, stored, coding, self.head]
        if coding:
            return [self.content_type, stored, coding]
        return [self.content_type, stored] if stored else [self.content_type]

    def unsent(self) -> Unsent:
        value = self._value
        return unsent(value) if isinstance(value, str) else self.view()

    def unsent_within(self) -> Unsent | Shared:
        """Return it as a frame for another process of this wrap: shared memory if it is large."""
        value = self._value
        if not isinstance(value, Shared) and len(value) >= SHARED_FROM:
            with contextlib.suppress(OSError):  # no descriptor is left
                if isinstance(value, Spilled):  # it stays on disk
                    return Shared.of(value.view())
                shared = Shared.of(value)
                self._replace(value, shared)
                return shared
        return value if isinstance(value, Shared) else self.unsent()

    def _replace(self, old: object, value: str | bytes | Shared) -> None:
        """Store another form of it, unless another thread has spilled it meanwhile."""
        if self._value is old:
            self._value = value

    def answer_type(self) -> str:
        """Return its content type for a client; if none is set, JSON if it is JSON.

        For a long value only its first and last bytes decide: parsing 10 MB takes ten times as long
        as all else that the wrap does with them.
        """
        if self.content_type:
            return self.content_type
        try:
            if len(self._value) > _PARSED:
                begin, end = self._ends()
                codecs.getincrementaldecoder("utf-8")().decode(begin)
                closed = begin.lstrip()[:1] + end.rstrip()[-1:] in (b"{}", b"[]", b'""')
            else:
                closed = is_json(self.text("strict"))
        except UnicodeDecodeError:
            return BYTES
        except RecursionError:
            return TEXT  # nobody can parse it as JSON either
        return JSON if closed else TEXT

    def _ends(self) -> tuple[bytes, bytes]:
        value = self._value
        if isinstance(value, str):
            return value[:_PARSED].encode(), value[-_PARSED:].encode()
        view = self.view()
        return bytes(view[:_PARSED]), bytes(view[-_PARSED:])


def received(frame: bytes | bytearray | memoryview | Shared, described: Sequence[Any]) -> Object:
    """Return the object of a message from another wrap: see `Object.described`."""
    content_type, stored, coding, *_ = (*map(str, described[:3]), "", "")
    head = _checked(described[3]) if len(described) > _HEAD else None
    if stored:
        return Object(_MISSING, content_type, stored, head)
    if isinstance(frame, Shared) and coding == _ASCII:
        frame.is_ascii = True
    return Object(frame, content_type, head=head)


def _checked(head: Any) -> Head:
    """Validate the head of a message, which may be forged. Raises ValueError or TypeError."""
    if isinstance(head, dict):
        return {str(name): str(value) for name, value in head.items()}
    status, headers = head
    return str(status), [(str(name), str(value)) for name, value in headers]


def shown(environ: dict[str, Any]) -> dict[str, str]:
    """Return what handlers may see of a request beside its body: texts, without our keys."""
    return {
        name: value
        for name, value in environ.items()
        if type(value) is str and not name.startswith(_OURS)
    }


def is_request(given: Object) -> bool:
    """Return whether `given` is a client's request, not the output of another task."""
    return isinstance(given.head, dict) and _UNTYPED not in given.head


def is_json(text: str) -> bool:
    """Return whether `text` is strict JSON (NaN and Infinity are not).

    Raises RecursionError if it is nested deeper than Python can parse.
    """
    with contextlib.suppress(quick_json.NotJsonError, UnicodeEncodeError, RecursionError):
        quick_json.check(text)
        return True
    try:  # msgspec refuses halves of surrogate pairs
        json.loads(text, parse_int=str, parse_constant=quick_json.refuse)
    except ValueError:
        return False
    return True


def quoted(text: str) -> tuple[str, ...]:
    """Return `text` as a JSON string, in parts; it is not copied if nothing must be escaped."""
    if text.isascii() and not any(map(text.__contains__, _ESCAPED)):
        return '"', text, '"'
    return (str(quick_json.encoded(text), "utf-8"),)
