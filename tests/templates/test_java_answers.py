"""Java handlers get and answer the same as in OpenFaaS's com.openfaas.entrypoint.App 0.1.0.

What is expected was recorded from that and from com.openfaas.model 0.1.1, on Java 17.
"""

from __future__ import annotations

import shutil
from http.client import HTTPConnection
from typing import Any

import pytest

from tests.templates.test_java import files

pytestmark = pytest.mark.skipif(shutil.which("javac") is None, reason="no JDK: install a JDK 17")
#: What a handler does -> its status, headers and body.
DOES: dict[str, tuple[int, list[tuple[str, str]], str]] = {
    'res.setBody(null); String was = res.getBody(); res.setBody(was + "");': (200, [], "null"),
    'res.setHeader("X-Aa", "1"); res.setHeader("x-aA", "2"); res.setHeader("X-AA", "3");': (
        200,
        [("X-AA", "3")],
        "",
    ),
    'res.setContentType("a/b"); res.setHeader("CONTENT-type", "c/d");': (
        200,
        [("Content-Type", "c/d")],
        "",
    ),
    'res = new Response() { public String getBody() { return "own"; } };': (200, [], "own"),
    'res.setBodyBytes(new byte[] {1}); res.setBody("text");': (200, [], "text"),
    'req.getQuery().put("k", "v"); req.getPath().clear(); '
    'res.setBody("" + req.getQuery() + req.getPath());': (200, [], "{k=v}{}"),
    'req = new Request("b", null); res.setBody(req.getQuery() + " " + req.getPath());': (
        200,
        [],
        "null null",
    ),
    'req = new Request("b", null, null, null); res.setBody("" + req.getQuery());': (200, [], "{}"),
}
#: What its server does not answer at all.
FAILS = {
    "res.setBody(null);": "because the return value of",
    'res.setHeader("X-A", null);': "X-A",
    'res.getHeaders().put("X-A", null);': "X-A",
    "res.setContentType(null);": "the response has no content type",
}
#: What its server answers in place of the handler; behind a watchdog, which escapes paths.
NO_URI = "<h1>400 Bad Request</h1>URISyntaxException thrown"
TARGETS = {
    "/?q={x}": (400, NO_URI),
    "/?a=%zz": (400, NO_URI),
    "/?a|b": (400, NO_URI),
    "/a[b]": (400, NO_URI),
    "//a": (404, "<h1>404 Not Found</h1>No context found for request"),
    "/a|b{c}?d": (200, "/a|b{c}"),
}


@pytest.fixture
def serve(start: Any, wrap_image: Any) -> Any:
    """Starts a wrap of one Java handler that does what a number in its body says."""

    def serve(*does: str) -> Any:
        cases = "".join(f"case {at}: {each} break;\n" for at, each in enumerate(does))
        body = f"switch (Integer.parseInt(req.getBody())) {{ {cases} }}"
        image = wrap_image({"run": files(body)}, styles={"run": "java"}, entry={"output": 0})
        return start(image)

    return serve


def test_what_it_answers_is_what_the_template_sends(serve: Any) -> None:
    server = serve(*DOES, *FAILS)
    for at, (does, (status, headers, body)) in enumerate(DOES.items()):
        connection = HTTPConnection("127.0.0.1", server.port)
        connection.request("POST", "/", str(at))
        answer = connection.getresponse()
        assert (answer.status, answer.read().decode()) == (status, body), does
        for name, value in headers:
            assert answer.headers.get_all(name) == [value], does
        connection.close()
    for at, (does, said) in enumerate(FAILS.items(), len(DOES)):
        told = server.request(body=str(at)).json
        assert (told["code"], told["error"]) == ("raised", "java.lang.NullPointerException"), does
        assert said in told["message"]


def test_a_target_that_is_no_uri_is_refused_as_by_the_template(serve: Any) -> None:
    server = serve("res.setBody(req.getPathRaw());")
    for target, (status, body) in TARGETS.items():
        answer = server.request("POST", target, "0")
        assert (answer.status, answer.text) == (status, body), target
        if status != 200:
            assert answer.headers["Content-Type"] == "text/html"
