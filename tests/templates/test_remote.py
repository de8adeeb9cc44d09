"""A call of another wrap through the gateway: how much may come back, and what if it breaks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext

import pytest
from wrap.core.errors import TaskError
from wrap.net import framing, gateway_client
from wrap.net.gateway_client import Gateway
from wrap.net.messages import Ident, Request, Result
from wrap.net.transport import Forwarded

from tests.rows import each_row
from tests.serving import Answering, served

LONGEST = 1 << 16
BODIES = {"whole": LONGEST, "too long": LONGEST + 1}


@pytest.fixture
def url() -> Iterator[str]:
    """Answers by the name in the path: with a length or without, or for ever."""

    class Handler(Answering):
        protocol_version = "HTTP/1.0"

        def do_POST(self) -> None:
            self.body()
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

    with served(Handler) as url:
        yield url


@each_row("name", ["whole", "whole-unsaid", "too-long", "too-long-unsaid", "endless"])
def test_an_answer_is_whole_or_above_the_bound_an_error_that_names_the_wrap(name, url):
    request = Forwarded("POST", "", {}, b"x")
    told = f"wrap {name} answered more than {LONGEST} bytes"
    with nullcontext() if name.startswith("whole") else pytest.raises(TaskError, match=told):
        answer = Gateway(url, "", LONGEST, 1).forward(name, request, time.monotonic() + 60)
        assert (answer.status, answer.body) == (200, bytes(LONGEST))


class Broken:
    """A gateway that answers as it is told, one answer after another.

    An answer is a status, ``cut`` for a connection that ends without one, ``error`` for an error of
    the wrap, ``done`` for its results, ``other`` for those of another execution.
    """

    def __init__(self, *answers: int | str) -> None:
        #: The methods that it was asked by.
        self.asked = list[str]()
        self._answers = list(answers)

    def call(self, attempts: int) -> int:
        """Call a wrap; how many results come back."""
        request = Request(Ident(), [0], {})
        numbers = {"done": request.ident.number, "other": request.ident.number - 1}
        asked, answers = self.asked, self._answers

        class Handler(Answering):
            def do_POST(self) -> None:
                self.body()
                asked.append(self.command)
                told = answers.pop(0)
                if told == "cut":
                    self.close_connection = True
                elif told in numbers:
                    done = Result(numbers[told], 0, "f", "far", 0, 0.0, 0.0)
                    self.answer(200, b"".join(framing.pieces(gateway_client.answer([done], 0.0))))
                elif told == "error":
                    self.answer(500, {"code": "raised", "message": "why", "wrap": "far"})
                else:
                    self.answer(int(told), b"no replica")

            def do_GET(self) -> None:
                self.do_POST()

        with served(Handler) as url:
            gateway = Gateway(url, "", LONGEST, attempts)
            return len(gateway.call("far", request, time.monotonic() + 30, lambda: None))


@each_row("broken", ["cut", 500, 502, 503])
def test_a_call_that_breaks_is_made_again_once_the_wrap_is_there(broken: int | str) -> None:
    gateway = Broken(broken, 502, 503, 404, "done")
    assert gateway.call(attempts=2) == 1
    assert gateway.asked == ["POST", "GET", "GET", "GET", "POST"]


@each_row(
    ("attempts", "answers", "posts"),
    [
        (1, ["cut"], 1),
        (1, [502], 1),
        (2, [502, 404, "cut"], 2),
        (2, ["error"], 1),
        (2, [404], 1),
        (2, ["other"], 1),
    ],
)
def test_it_is_not_made_again_without_attempts_or_after_an_answer(attempts, answers, posts):
    gateway = Broken(*answers)
    with pytest.raises(TaskError):
        gateway.call(attempts)
    assert gateway.asked.count("POST") == posts
