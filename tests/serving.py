"""HTTP servers for the length of a test: what answers, and where it listens."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ssl import SSLContext
from typing import Any


class Answering(BaseHTTPRequestHandler):
    """Answers requests over connections that are kept, and logs nothing."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are two writes

    def body(self) -> bytes:
        """What the request has in it."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status: int, content: Any = b"") -> None:
        """Send bytes, or else JSON."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing."""


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # as many may connect at once


@contextmanager
def served(handler: type[BaseHTTPRequestHandler], tls: SSLContext | None = None) -> Iterator[str]:
    """The URL where `handler` answers, for the length of the block, by TLS if it is given."""
    with _Server(("127.0.0.1", 0), handler) as server:
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
