"""What answers in the place of another wrap takes no more memory than an output may."""

from __future__ import annotations

import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest

from tests.serving import served

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
    answer = Gateway(url, "", LONGEST).forward(name, request, time.monotonic() + 60)
    assert (answer.status, answer.body) == (200, bytes(LONGEST))


@pytest.mark.parametrize("name", ["too-long", "too-long-unsaid", "endless"])
def test_an_answer_above_the_bound_is_an_error_that_names_the_wrap(name: str, url: str) -> None:
    from wrap.core.errors import TaskError
    from wrap.net.gateway_client import Gateway
    from wrap.net.transport import Forwarded

    request = Forwarded("POST", "", {}, b"x")
    with pytest.raises(TaskError, match=f"wrap {name} answered more than {LONGEST} bytes"):
        Gateway(url, "", LONGEST).forward(name, request, time.monotonic() + 60)
