"""A call of another wrap through the gateway: how much may come back, and what if it breaks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest

from tests.serving import Answering, served

LONGEST = 1 << 16
BODIES = {"whole": LONGEST, "too long": LONGEST + 1}


@pytest.fixture
def url() -> Iterator[str]:
    """Answers by the name in the path: with a length or without, or for ever."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            name = self.path.rpartition("/")[2].replace("-", " ")
            size = BODIES.get(name.removesuffix(" unsaid"))
            self.send_response(200)
            if size and not name.endswith("unsaid"):
                self.send_header("Content-Length", str(size))
            self.end_headers()
            try:
                self.wfile.write(bytes(size or 0))
                while size is None:
                    self.wfile.write(bytes(LONGEST))
            except ConnectionError:
                return

        def log_message(self, *_: object) -> None:
            pass

    with served(Handler) as url:
        yield url


@pytest.mark.parametrize("name", ["whole", "whole-unsaid"])
def test_an_answer_within_the_bound_is_whole(name: str, url: str) -> None:
    from wrap.net.gateway_client import Gateway
    from wrap.net.transport import Forwarded

    request = Forwarded("POST", "", {}, b"x")
    answer = Gateway(url, "", LONGEST, 1).forward(name, request, time.monotonic() + 60)
    assert (answer.status, answer.body) == (200, bytes(LONGEST))


@pytest.mark.parametrize("name", ["too-long", "too-long-unsaid", "endless"])
def test_an_answer_above_the_bound_is_an_error_that_names_the_wrap(name: str, url: str) -> None:
    from wrap.core.errors import TaskError
    from wrap.net.gateway_client import Gateway
    from wrap.net.transport import Forwarded

    request = Forwarded("POST", "", {}, b"x")
    with pytest.raises(TaskError, match=f"wrap {name} answered more than {LONGEST} bytes"):
        Gateway(url, "", LONGEST, 1).forward(name, request, time.monotonic() + 60)


class Broken:
    """A gateway that answers as it is told, one answer after another.

    An answer is a status, ``cut`` for a connection that ends without one, ``error`` for an error of
    the wrap, ``done`` for its results.
    """

    def __init__(self, *answers: int | str) -> None:
        #: The methods that it was asked by.
        self.asked = list[str]()
        self._answers = list(answers)

    def call(self, attempts: int) -> int:
        """Call a wrap; how many results come back."""
        from wrap.net import framing
        from wrap.net.gateway_client import Gateway, answer
        from wrap.net.messages import Ident, Request, Result

        request = Request(Ident(), [0], {})
        done = Result(request.ident.number, 0, "f", "far", 0, 0.0, 0.0)
        asked, answers = self.asked, self._answers

        class Handler(Answering):
            def do_POST(self) -> None:
                self.body()
                asked.append(self.command)
                told = answers.pop(0)
                if told == "cut":
                    self.close_connection = True
                elif told == "done":
                    self.answer(200, b"".join(framing.pieces(answer([done], 0.0))))
                elif told == "error":
                    self.answer(500, {"code": "raised", "message": "why", "wrap": "far"})
                else:
                    self.answer(int(told), b"no replica")

            def do_GET(self) -> None:
                self.do_POST()

        with served(Handler) as url:
            gateway = Gateway(url, "", LONGEST, attempts)
            return len(gateway.call("far", request, time.monotonic() + 30, lambda: None))


@pytest.mark.parametrize("broken", ["cut", 500, 502, 503])
def test_a_call_that_breaks_is_made_again_once_the_wrap_is_there(broken: int | str) -> None:
    gateway = Broken(broken, 502, 503, 404, "done")
    assert gateway.call(attempts=2) == 1
    assert gateway.asked == ["POST", "GET", "GET", "GET", "POST"]


@pytest.mark.parametrize(
    ("attempts", "answers", "posts"),
    [(1, ["cut"], 1), (1, [502], 1), (2, [502, 404, "cut"], 2), (2, ["error"], 1), (2, [404], 1)],
)
def test_it_is_not_made_again_without_attempts_or_after_an_answer(
    attempts: int, answers: list[int | str], posts: int
) -> None:
    from wrap.core.errors import TaskError

    gateway = Broken(*answers)
    with pytest.raises(TaskError):
        gateway.call(attempts)
    assert gateway.asked.count("POST") == posts
