"""A fake gateway that records what it is sent and answers what a test tells it to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.serving import Answering, served


@dataclass
class Call:
    """One request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}"


@dataclass
class FakeGateway:
    """Answers by "METHOD path"; a list of answers is used up to its last, which stays."""

    url: str
    calls: list[Call] = field(default_factory=list)
    answers: dict[str, list[tuple[int, bytes]]] = field(default_factory=dict)

    def answer(self, line: str, *answers: tuple[int, Any]) -> None:
        self.answers[line] = [(status, _encoded(content)) for status, content in answers]

    def lines(self) -> list[str]:
        return [call.line for call in self.calls]

    def next_answer(self, line: str) -> tuple[int, bytes]:
        queue = self.answers.get(line, [(404, b"nothing here")])
        return queue.pop(0) if len(queue) > 1 else queue[0]


def _encoded(content: Any) -> bytes:
    return content if isinstance(content, bytes) else json.dumps(content).encode()


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    class Handler(Answering):
        def _serve(self) -> None:
            parts = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(parts.query).items()}
            headers = {key.lower(): value for key, value in self.headers.items()}
            port = self.client_address[1]
            call = Call(self.command, parts.path, query, headers, self.body(), port)
            fake.calls.append(call)
            self.answer(*fake.next_answer(call.line))

        do_GET = do_POST = do_PUT = do_DELETE = do_OPTIONS = _serve  # noqa: N815

    with served(Handler) as url:
        fake = FakeGateway(url)
        yield fake


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Writes a file of the given relative name below the test's own folder."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write
