"""Asynchronous calls are accepted at once; their answers go to the callback."""

from __future__ import annotations

import gzip

import requests

TIMEOUT_S = 60


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


def test_a_call_that_fails_is_reported_to_the_callback(deploy, callback):
    function = deploy("raise RuntimeError\nhandle = None")
    assert call(function, {"X-Callback-Url": callback.url}).status_code == 202
    headers, body = callback.get(timeout=TIMEOUT_S)
    assert headers["X-Function-Status"] == "503"
    assert b"not ready" in body


def test_encoded_bodies_pass_as_they_came(deploy, callback):
    function = deploy("""
        def handle(request):
            return 200, {"Content-Encoding": "gzip"}, request.body
    """)
    headers = {"X-Callback-Url": callback.url, "Content-Encoding": "gzip"}
    for body in (gzip.compress(b"packed"), b"not packed"):
        assert call(function, headers, body).status_code == 202
        came, answer = callback.get(timeout=TIMEOUT_S)
        assert (came["Content-Encoding"], answer) == ("gzip", body)


def test_a_call_goes_on_when_its_caller_has_gone(deploy, wait_until):
    function = deploy("""
        import time

        def handle(request):
            time.sleep(0.5)
            print("ran", flush=True)
            return ""
    """)
    with requests.Session() as leaving:
        url = f"{function.gateway}/async-function/{function.name}"
        assert leaving.post(url, timeout=TIMEOUT_S).status_code == 202
    wait_until(lambda: "ran" in function.logs())


def test_a_call_of_an_unknown_function_is_404(gateway):
    url = f"{gateway.url}/async-function/nobody.openfaas-fn"
    assert requests.post(url, timeout=TIMEOUT_S).status_code == 404
