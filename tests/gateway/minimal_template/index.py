"""The least template there can be: serves function/handler.py on the inherited socket."""

import os
import signal
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from function.handler import handle


class Handler(BaseHTTPRequestHandler):
    """Answers with what `handle(request)` returns: text, or (status, headers, text)."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *_):
        """Keep the log for what handlers print."""

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        if self.path == "/_/health":
            result = "OK"
        else:
            self.body = body
            result = handle(self)
        status, headers, text = result if isinstance(result, tuple) else (200, {}, result)
        data = text.encode() if isinstance(text, str) else text
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer  # noqa: N815


signal.signal(signal.SIGTERM, lambda *_: sys.exit(int(os.environ.get("END_STATUS", "0"))))
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
server.socket.close()
server.socket = socket.socket(fileno=int(os.environ["LISTEN_FD"]))
server.daemon_threads = True
server.serve_forever()
