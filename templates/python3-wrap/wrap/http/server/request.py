"""A request as it comes over a connection, and when it is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from waitress.adjustments import Adjustments
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.receiver import FixedStreamReceiver
from waitress.utilities import BadRequest, Error, RequestEntityTooLarge

from .body import LARGE, LargeBody, Nowhere

#: Of a head, or of what stands between the chunks of a body.
HEAD, _FIELDS = 1 << 16, 256
#: What a request takes in memory beside its bytes.
REQUEST = 1 << 12
#: A chunked body is read so much at a time: waitress copies what follows a chunk with each of them.
_CHUNKED = 1 << 13


class FullError(Error):  # type: ignore[misc]
    code = 503
    reason = "Service Unavailable"


class Parser(HTTPRequestParser):  # type: ignore[misc]
    """A request as it comes."""

    command = ""
    completed: bool
    error: Error | None

    def __init__(self, adj: Adjustments) -> None:
        super().__init__(adj)
        #: Bytes that it holds.
        self.size = REQUEST
        #: The answer that it gets when it is whole; what comes of it until then is dropped, as only
        #: a client that has sent all looks at its answer.
        self.refusal: Error | None = None
        #: Whether it is answered later, and the answer when it is there.
        self.later = False
        self.answer: Callable[..., Iterable[bytes]] | None = None
        #: When it was whole.
        self.arrived = 0.0
        #: Whether it only asks how the server is.
        self.is_probe = False
        #: The HTTP status of its answer; empty where it has got none.
        self.status = ""

    @property
    def in_body(self) -> bool:
        """Whether more of a body is to come that has not been refused."""
        return self.body_rcv is not None and self.refusal is None

    def refuse(self, refusal: Error) -> None:
        """Hold nothing of it."""
        self.refusal = refusal
        self.size = REQUEST
        self.body_rcv.buf = Nowhere()

    def refuse_all(self, error: Error) -> Parser:
        """Have this error answered, and nothing more that comes over the connection."""
        self.error = error
        return self

    def received(self, data: bytes) -> int:
        """As ever; counts, and refuses what is too much."""
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
        body = self.body_rcv  # what it has between chunks is no part of the body yet
        if len(body.control_line) + len(body.trailer) > HEAD:
            self.error = BadRequest(f"more than {HEAD} bytes between two chunks")
            self.completed = True
        elif self.refusal is None and self.size >= self.adj.inbuf_overflow:
            self._refuse_size()

    def parse_header(self, header_plus: bytes) -> None:
        """As ever; decides where the body goes."""
        if header_plus.count(b"\r\n") > _FIELDS:
            raise ParsingError(f"more than {_FIELDS} headers")
        super().parse_header(header_plus)
        length = self.content_length
        if self.size + len(header_plus) + length >= self.adj.inbuf_overflow:
            self._refuse_size()
        elif length >= LARGE:
            self.body_rcv = FixedStreamReceiver(length, LargeBody(length))

    def _refuse_size(self) -> None:
        most = self.adj.inbuf_overflow - 1
        self.refuse(RequestEntityTooLarge(f"a request may have {most} bytes here"))
