"""The function URL hands on requests and answers as they are."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import json
import random
import zlib
from urllib.parse import urlsplit

import pytest
import requests

from tests.rows import each_row

TIMEOUT_S = 60
MIRROR = """
    import json

    def handle(request):
        return json.dumps({
            "method": request.command,
            "target": request.path,
            "headers": {name.lower(): value for name, value in request.headers.items()},
            "body": request.body.decode(),
        })
"""


@pytest.fixture(scope="module")
def mirror(deploy_for_all):
    """A function that tells what it was sent."""
    return deploy_for_all(MIRROR)


@each_row("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_any_method_reaches_the_function(mirror, method):
    url = f"{mirror.gateway}/function/{mirror.name}"
    assert requests.request(method, url, timeout=TIMEOUT_S).json()["method"] == method


@each_row(
    ("suffix", "target"),
    [
        ("", "/"),
        ("/", "/"),
        (".openfaas-fn", "/"),
        (".openfaas-fn/orders/7", "/orders/7"),
        ("/orders/7/?a=1&b=%20x", "/orders/7/?a=1&b=%20x"),
        ("?a=1", "/?a=1"),
        ("/a%2Fb//c", "/a%2Fb//c"),
    ],
)
def test_the_path_below_the_name_and_the_query_reach_the_function_unchanged(mirror, suffix, target):
    assert mirror.post(path=suffix).json()["target"] == target


@each_row("name", ["nobody", "nobody.openfaas-fn", "nobody.elsewhere"])
def test_an_unknown_function_is_404(gateway, name):
    answer = requests.post(f"{gateway.url}/function/{name}", timeout=TIMEOUT_S)
    assert answer.status_code == 404
    assert name in answer.text


def test_the_gateway_adds_openfaas_s_headers(echo):
    headers = echo.post(headers={"X-Call-Id": "mine"}).headers
    assert headers["X-Call-Id"] == "mine"
    assert int(headers["X-Start-Time"]) > 10**18
    assert float(headers["X-Duration-Seconds"]) > 0
    assert headers["X-Served-By"]
    assert echo.post().headers["X-Call-Id"] != echo.post().headers["X-Call-Id"]


def test_hop_by_hop_headers_end_at_the_gateway(mirror):
    sent = {"Connection": "keep-alive, X-Private", "X-Private": "1", "TE": "trailers", "X-Own": "1"}
    seen = mirror.post("x", headers=sent).json()["headers"]
    assert seen["x-own"] == "1"
    assert not {"te", "x-private"} & set(seen)


def test_the_date_of_a_request_passes_as_a_signature_may_cover_it(mirror):
    date = "Fri, 02 Jan 2026 00:00:00 GMT"
    answer = mirror.post("x", headers={"Date": date})
    assert answer.json()["headers"]["date"] == date
    assert answer.raw.headers.getlist("Date") == [answer.headers["Date"]]


def test_a_streamed_answer_arrives_while_the_function_still_runs(deploy, in_background):
    function = deploy("""
        import threading
        go_on = threading.Event()

        def handle(request):
            if request.path == "/go-on":
                go_on.set()
                return ""
            request.send_response(200)
            request.send_header("Transfer-Encoding", "chunked")
            request.end_headers()
            request.wfile.write(b"5\\r\\nfirst\\r\\n")
            request.wfile.flush()
            go_on.wait(20)
            request.wfile.write(b"6\\r\\nsecond\\r\\n0\\r\\n\\r\\n")
            request.wfile.flush()
            request.close_connection = True
            raise SystemExit
    """)
    answer = function.post(stream=True)
    pieces = answer.iter_content(None)
    assert next(pieces) == b"first"
    function.post(path="/go-on")
    assert b"".join(pieces) == b"second"


def test_the_answer_to_head_says_the_length_and_has_no_body(echo):
    echo.post()
    connection = http.client.HTTPConnection(urlsplit(echo.gateway).netloc, timeout=TIMEOUT_S)
    connection.request("HEAD", f"/function/{echo.name}", body=b"12345")
    answer = connection.getresponse()
    assert (answer.read(), answer.headers["Content-Length"]) == (b"", "5")
    connection.request("POST", f"/function/{echo.name}", body=b"again")
    assert connection.getresponse().read() == b"again"
    connection.close()


BACK = """
    def handle(request):
        encoding = request.headers["Content-Encoding"]
        if request.path == "/whole":
            return 200, {"Content-Encoding": encoding}, request.body
        request.send_response(200)
        request.send_header("Content-Encoding", encoding)
        request.send_header("Connection", "close")
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        if request.body:
            request.wfile.write(b"%x\\r\\n%b\\r\\n" % (len(request.body), request.body))
        request.wfile.write(b"0\\r\\n\\r\\n")
        request.wfile.flush()
        request.close_connection = True
        raise SystemExit
"""
#: As random as compressed data is, so that what is packed is as large as what is not.
NOISE = random.Random(1).randbytes(3 << 19)


@pytest.fixture(scope="module")
def back(deploy_for_all):
    """A function that answers what it is sent, with its encoding."""
    return deploy_for_all(BACK)


def packed(size):
    """Bodies below or above what the gateway holds whole, by the encoding that they claim."""
    data = NOISE[:size]
    yield "gzip", gzip.compress(data)
    yield "deflate", zlib.compress(data)
    for encoding in ("gzip", "deflate", "br", "zstd", "gzip, br", "x-unknown", "identity"):
        yield encoding, data  # whatever they claim


@pytest.mark.each_once
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("size", [0, 1000, len(NOISE)])
def test_encoded_bodies_pass_as_they_came_both_ways(back, size, chunked):
    for encoding, body in packed(size):
        for path in ("/whole", "/in-pieces"):
            sent = iter([body[:400], body[400:]]) if chunked and body else body
            headers = {"Content-Encoding": encoding}
            with back.post(sent, path, headers=headers, stream=True) as answer:
                assert answer.status_code == 200, (encoding, path, answer.text)
                assert answer.headers["Content-Encoding"] == encoding
                came = answer.raw.read(decode_content=False)
                assert hashlib.sha256(came).digest() == hashlib.sha256(body).digest()


def test_what_a_client_did_not_send_is_not_added_and_the_rest_stays_as_it_was(deploy):
    function = deploy("""
        def handle(request):
            return 418, {"Content-Type": "text/tea", "X-CaSe": "1"}, str(request.headers)
    """)
    function.post()
    connection = http.client.HTTPConnection(urlsplit(function.gateway).netloc, timeout=TIMEOUT_S)
    connection.putrequest("POST", f"/function/{function.name}", skip_accept_encoding=True)
    own = [("Content-Length", "0"), ("X-TwIcE", "a"), ("X-TwIcE", "b"), ("X-Empty", "")]
    for name, value in own:
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    seen = [tuple(line.split(": ", 1)) for line in answer.read().decode().strip().splitlines()]
    connection.close()

    added = ("Host", "X-Call-Id", "X-Start-Time")
    assert sorted(pair for pair in seen if pair[0] not in added) == sorted(own)
    assert answer.status == 418
    assert {("X-CaSe", "1"), ("Content-Type", "text/tea")} <= {*answer.getheaders()}


def test_metrics_count_calls_under_openfaas_s_names(deploy):
    function = deploy()
    for _ in range(3):
        function.post()
    lines = requests.get(f"{function.gateway}/metrics", timeout=TIMEOUT_S).text.splitlines()
    label = f'function_name="{function.name}.openfaas-fn"'
    assert f'gateway_function_invocation_total{{code="200",{label}}} 3.0' in lines
    assert f"gateway_functions_seconds_count{{{label}}} 3.0" in lines
    assert f"gateway_service_count{{{label}}} 1.0" in lines
    assert json.dumps(function.describe()["invocationCount"]) == "3.0"


@pytest.mark.parametrize("size", [5, 3 << 20])  # held whole, and passed on piece by piece
def test_metrics_count_the_bytes_of_requests_and_answers(deploy, size):
    function = deploy()
    before = carried(function)
    for _ in range(2):
        assert len(function.post("r" * size).content) == size
    assert carried(function) == before + 4 * size


def carried(function) -> float:
    text = requests.get(f"{function.gateway}/metrics", timeout=TIMEOUT_S).text
    name = f'gateway_function_bytes_total{{function_name="{function.name}.openfaas-fn"}}'
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))
