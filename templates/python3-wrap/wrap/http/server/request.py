"""A request as it arrives over a connection, and when it is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from waitress.adjustments import Adjustments
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.receiver import FixedStreamReceiver
from waitress.utilities import BadRequest, Error, RequestEntityTooLarge

from wrap.core.shedding import SEND_LESS

from .body import LARGE, LargeBody, Nowhere

#: Most bytes of a head, or between the chunks of a body; most header fields.
HEAD, _FIELDS = 1 << 16, 256
#: Bytes of memory that a request takes beside its content.
REQUEST = 1 << 12
#: Bytes of a chunked body to read at a time: for each chunk, waitress copies all bytes after it.
_CHUNKED = 1 << 13


class FullError(Error):  # type: ignore[misc]
    code = 503
    reason = "Service Unavailable"


class Parser(HTTPRequestParser):  # type: ignore[misc]
    command = ""
    completed: bool
    error: Error | None

    def __init__(self, adj: Adjustments) -> None:
        super().__init__(adj)
        self.size = REQUEST
        #: The answer when the request is complete. Its bytes are dropped until then, as a client
        #: reads the answer only after it has sent all.
        self.refusal: Error | None = None
        #: Whether it is answered later, and the answer once it exists.
        self.later = False
        self.answer: Callable[..., Iterable[bytes]] | None = None
        #: When it was complete.
        self.arrived = 0.0
        #: Whether it only probes the server.
        self.is_probe = False
        #: Its header fields, if WSGI leaves one out or joins some; else empty.
        self.fields = ""
        #: The HTTP status of its answer; empty before that.
        self.status = ""

    @property
    def in_body(self) -> bool:
        """Whether more of a body that has not been refused will arrive."""
        return self.body_rcv is not None and self.refusal is None

    def refuse(self, refusal: Error) -> None:
        self.refusal = refusal
        self.size = REQUEST
        self.body_rcv.buf = Nowhere()

    def refuse_all(self, error: Error) -> Parser:
        """Answer this error, and ignore all further bytes of the connection."""
        self.error = error
        return self

    def received(self, data: bytes) -> int:
        """Parse bytes; count them, and refuse a request that is too large."""
        if self.error and not self.completed:
            self.completed = True
            return len(data)
        if self.chunked:
            data = data[: max(_CHUNKED, self.body_rcv.chunk_remainder)]
        taken = int(super().received(data))
        if self.refusal is None:
            self.size += taken
        if self.chunked:
            self._check_chunks()
        if self.completed and self.refusal is not None:
            self.error = self.error or self.refusal
        return taken

    def _check_chunks(self) -> None:
        body = self.body_rcv  # bytes between chunks are no part of the body yet
        if len(body.control_line) + len(body.trailer) > HEAD:
            self.error = BadRequest(f"more than {HEAD} bytes between two chunks")
            self.completed = True
        elif self.refusal is None and self.size >= self.adj.inbuf_overflow:
            self._refuse_size()

    def parse_header(self, header_plus: bytes) -> None:
        """Parse the head, and decide where the body is stored."""
        if header_plus.count(b"\r\n") > _FIELDS:
            raise ParsingError(f"more than {_FIELDS} headers")
        super().parse_header(header_plus)
        _, *fields = header_plus.rstrip().split(b"\r\n")
        names = [field.partition(b":")[0].lower() for field in fields]
        is_folded = any(name[:1].isspace() for name in names)
        if (len({*names}) < len(names) or b"_" in b"".join(names)) and not is_folded:
            self.fields = b"\r\n".join(fields).decode("latin-1")
        length = self.content_length
        if self.size + len(header_plus) + length >= self.adj.inbuf_overflow:
            self._refuse_size()
        elif length >= LARGE:
            self.body_rcv = FixedStreamReceiver(length, LargeBody(length))

    def _refuse_size(self) -> None:
        most = self.adj.inbuf_overflow - 1
        self.refuse(RequestEntityTooLarge(f"a request may have {most} bytes here: {SEND_LESS}"))
