"""Objects: the immutable values that tasks give and get, bytes with a content type.

One is kept as it came, and turned into what somebody asks for no earlier than that: a text that a
handler returns is the very text that the next one in its process gets.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from wrap.net.framing import Unsent, unsent
from wrap.values.disk import Spilled
from wrap.values.in_json import InJson, to_json
from wrap.values.shared_memory import Shared

JSON, TEXT, BYTES = "application/json", "text/plain; charset=utf-8", "application/octet-stream"
#: Objects from so many bytes on cross to other processes as shared memory.
SHARED_FROM = 1 << 17
#: In the place of what only a store has.
_MISSING = bytearray()
#: Answers up to so many bytes are read to find out what they are.
_PARSED = 1 << 16
#: Sees whether a text is JSON and makes no values of it: 1 ms for 1 MB, where `json` takes 11.
_READ = msgspec.json.Decoder(msgspec.Raw).decode
_QUOTE = msgspec.json.Encoder().encode
#: What a JSON string has to escape; lines and quotes are the likeliest.
_ESCAPED = ("\n", '"', "\\", *map(chr, range(32)))
#: What is said of a text that is.
_ASCII = "ascii"
#: What knows itself how it is read.
_STORED = (Shared, Spilled)
#: The place of the head in what a message has of an object.
_HEAD = 3
#: What the headers begin with by which wraps and our clients tell each other something.
_OURS = "HTTP_X_CHIRON_"
#: Of a request its WSGI environment, of an answer its status and its headers.
Head = dict[str, Any] | tuple[str, list[tuple[str, str]]] | None


class Object:
    """An immutable value.

    Args:
        value: bytes, or a text that stands for its UTF-8.
        content_type: empty where nobody has said it.
        stored: the name under which a store has it, by which it goes to other wraps; empty where
            none has.
        head: what its HTTP message has beside body and content type; None where there is no more.
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
        """Whether only its name has come, and the store has its bytes."""
        return self._value is _MISSING

    def fill(self, value: bytes) -> None:
        """Take what the store has of it."""
        self._value = value

    @property
    def size(self) -> int:
        """Its bytes, or of a text its characters."""
        return len(self._value)

    @property
    def memory(self) -> int:
        """The bytes of its value in memory: a text may take four for each character."""
        value = self._value
        return sys.getsizeof(value) if isinstance(value, str) else len(value)

    def spill(self, value: Spilled) -> None:
        """Be on disk from now on. What others have got of it stays in memory with them."""
        self._value = value

    def text(self, errors: str = "replace") -> str:
        """It as a text: what is no UTF-8 becomes what `errors` says, as in `bytes.decode`.

        Flask replaces it too in what a handler of python3-flask gets.
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
        """What stands for it in a JSON document, from which its bytes can be had."""
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
        """Its bytes, to be read or sent, not copied unless they have to be made of a text."""
        value = self._value
        if isinstance(value, _STORED):
            return value.view()
        return value.encode() if isinstance(value, str) else memoryview(value)

    def described(self) -> tuple[list[Any], Unsent]:
        """It for another wrap: what the message says of it, and its frame.

        Where a store has it, its name goes there, and the frame is empty. Of a large text it is
        said whether it is ASCII: to see that takes 7 ms of 100 MB.
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
        """What a message has of it beside its frame, up to the last field that says something."""
        if isinstance(self.head, dict):
            return [self.content_type, stored, coding, shown(self.head)]
        if self.head is not None:
            return [self.content_type, stored, coding, self.head]
        if coding:
            return [self.content_type, stored, coding]
        return [self.content_type, stored] if stored else [self.content_type]

    def unsent(self) -> Unsent:
        """It as a frame."""
        value = self._value
        return unsent(value) if isinstance(value, str) else self.view()

    def unsent_within(self) -> Unsent | Shared:
        """It as a frame for another process of this wrap: shared memory if it is large."""
        value = self._value
        if not isinstance(value, Shared) and len(value) >= SHARED_FROM:
            with contextlib.suppress(OSError):  # no descriptor could be had
                if isinstance(value, Spilled):  # it stays on disk
                    return Shared.of(value.view())
                shared = Shared.of(value)
                self._replace(value, shared)
                return shared
        return value if isinstance(value, Shared) else self.unsent()

    def _replace(self, old: object, value: str | bytes | Shared) -> None:
        """Have it in another form, unless another thread has spilled it meanwhile."""
        if self._value is old:
            self._value = value

    def answer_type(self) -> str:
        """What to call it to a client, if nobody has said: JSON where it is that.

        Of a long one the ends tell: to parse 10 MB would take ten times as long as all else that
        the wrap does with them.
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
            return TEXT  # nobody can read it as JSON either
        return JSON if closed else TEXT

    def _ends(self) -> tuple[bytes, bytes]:
        value = self._value
        if isinstance(value, str):
            return value[:_PARSED].encode(), value[-_PARSED:].encode()
        view = self.view()
        return bytes(view[:_PARSED]), bytes(view[-_PARSED:])


def received(frame: bytes | bytearray | memoryview | Shared, described: Sequence[Any]) -> Object:
    """The object of a message from another wrap: see `Object.described`."""
    content_type, stored, coding, *_ = (*map(str, described[:3]), "", "")
    head = _checked(described[3]) if len(described) > _HEAD else None
    if stored:
        return Object(_MISSING, content_type, stored, head)
    if isinstance(frame, Shared) and coding == _ASCII:
        frame.is_ascii = True
    return Object(frame, content_type, head=head)


def _checked(head: Any) -> Head:
    """A head of a message, which anybody may have made up. Raises ValueError or TypeError."""
    if isinstance(head, dict):
        return {str(name): str(value) for name, value in head.items()}
    status, headers = head
    return str(status), [(str(name), str(value)) for name, value in headers]


def shown(environ: dict[str, Any]) -> dict[str, str]:
    """What handlers may see of a request beside its body: texts, and no keys of ours."""
    return {
        name: value
        for name, value in environ.items()
        if type(value) is str and not name.startswith(_OURS)
    }


def is_json(text: str) -> bool:
    """Whether `text` is strict JSON (NaN and Infinity are not).

    Raises RecursionError where it is nested deeper than Python reads.
    """
    with contextlib.suppress(msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        _READ(text)
        return True
    try:  # halves of surrogate pairs are no text to msgspec
        json.loads(text, parse_int=str, parse_constant=_refuse)
    except ValueError:
        return False
    return True


def quoted(text: str) -> tuple[str, ...]:
    """`text` as a JSON string, in parts: it is not copied where nothing of it has to be escaped."""
    if text.isascii() and not any(map(text.__contains__, _ESCAPED)):
        return '"', text, '"'
    return (str(_QUOTE(text), "utf-8"),)


def _refuse(constant: str) -> Any:
    raise ValueError(constant)
