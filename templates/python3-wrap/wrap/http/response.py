"""An answer of the wrap itself, which is a WSGI application."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from wrap.functions.styles import LENGTH, UNSAID, may_have_body, status_line

_Body = bytes | bytearray | memoryview
#: The headers that an answer with status 304 must not have, in lower case.
_OF_BODY = {
    *("allow", "content-encoding", "content-language", "content-length", "content-md5"),
    *("content-range", "content-type", "last-modified"),
}
_UNMODIFIED = 304


class Response:
    """An answer to the client.

    Args:
        body: one piece, or a list of pieces; for another iterable no length is sent.
        status: a number, or a status line.
        headers: all but the content type; a length among them is that of an answer to HEAD.
        content_type: empty if the answer has none.
    """

    def __init__(
        self,
        body: str | bytes | bytearray | Iterable[_Body] = "",
        status: int | str = 200,
        headers: Sequence[tuple[str, str]] = (),
        content_type: str = UNSAID,
    ) -> None:
        self.status = status if isinstance(status, str) else status_line(status)
        self.headers = [*headers, *([("Content-Type", content_type)] if content_type else [])]
        if isinstance(body, str):
            body = body.encode()
        self._body = [body] if isinstance(body, bytes | bytearray) else body

    @property
    def status_code(self) -> int:
        return int(self.status[:3])

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., object]
    ) -> Iterable[_Body]:
        status, headers = self.status_code, self.headers
        has_body = may_have_body(status)
        own = any(name.lower() == LENGTH for name, _ in headers)
        if own and environ["REQUEST_METHOD"] != "HEAD":
            headers, own = [each for each in headers if each[0].lower() != LENGTH], False
        if has_body and not own and isinstance(self._body, list):
            headers = [*headers, ("Content-Length", str(sum(map(len, self._body))))]
        elif status == _UNMODIFIED:
            headers = [each for each in headers if each[0].lower() not in _OF_BODY]
        start_response(self.status, headers)
        if has_body and environ["REQUEST_METHOD"] != "HEAD":
            return self._body
        if close := getattr(self._body, "close", None):
            close()
        return ()
