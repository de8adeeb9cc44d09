"""Asynchronous calls are accepted at once; their answers go to the callback."""

from __future__ import annotations

import queue
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import requests

TIMEOUT_S = 60


@pytest.fixture
def callback():
    """A server that queues the (headers, body) of what is posted to it."""
    received: queue.Queue = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.put((self.headers, body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    received.url = f"http://127.0.0.1:{server.server_port}/done"
    yield received
    server.shutdown()
    thread.join()
    server.server_close()


def call(function, headers, body="hello", path=""):
    url = f"{function.gateway}/async-function/{function.name}.openfaas-fn{path}"
    return requests.post(url, data=body, headers=headers, timeout=TIMEOUT_S)


def test_a_call_is_202_with_an_id_and_its_answer_goes_to_the_callback(deploy, callback):
    function = deploy("""
        import time

        def handle(request):
            time.sleep(0.3)
            return 201, {"Content-Type": "text/x"}, request.path.encode() + request.body
    """)
    accepted = call(function, {"X-Callback-Url": callback.url}, path="/sub?q=1")
    assert (accepted.status_code, accepted.content) == (202, b"")
    headers, body = callback.get(timeout=TIMEOUT_S)
    assert body == b"/sub?q=1hello"
    assert headers["X-Call-Id"] == accepted.headers["X-Call-Id"]
    assert headers["X-Function-Name"] == function.name
    assert headers["X-Function-Status"] == "201"
    assert headers["Content-Type"] == "text/x"
    assert float(headers["X-Duration-Seconds"]) >= 0.3


def test_a_call_without_callback_runs_too(deploy, wait_until):
    function = deploy("""
        def handle(request):
            print("ran with", request.body.decode())
            return ""
    """)
    assert call(function, {}, "this").status_code == 202
    wait_until(lambda: "ran with this" in function.logs())


def test_a_call_that_fails_is_reported_to_the_callback(deploy, callback):
    function = deploy("raise RuntimeError\nhandle = None")
    assert call(function, {"X-Callback-Url": callback.url}).status_code == 202
    headers, body = callback.get(timeout=TIMEOUT_S)
    assert headers["X-Function-Status"] == "503"
    assert b"not ready" in body


def test_a_call_of_an_unknown_function_is_404(gateway):
    url = f"{gateway.url}/async-function/nobody.openfaas-fn"
    assert requests.post(url, timeout=TIMEOUT_S).status_code == 404
