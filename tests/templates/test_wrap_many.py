"""Many executions at once: none waits for another's tasks, and waiting takes no thread."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

AT_ONCE = 200
#: Threads of a wrap that wait for more work are kept, up to so many; and it has a few of its own.
IDLE, OWN = 64, 4
#: Goes on when there is a file `go`.
FIRST = """
    import time
    from pathlib import Path

    def handle(req):
        Path(f"began-{req}").touch()
        while not Path("go").exists():
            time.sleep(0.1)
        return req
"""
NEXT = "import time\ndef handle(req):\n    time.sleep({pause})\n    return req + '{letter}'\n"


@contextmanager
def asked(port: int) -> Iterator[list[http.client.HTTPConnection]]:
    """Connections over each of which its number was sent."""
    with ExitStack() as all_closed:
        connections = []
        for number in range(AT_ONCE):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            all_closed.callback(connection.close)
            connection.request("POST", "/", str(number))
            connections.append(connection)
        yield connections


@pytest.fixture
def chain(start: Any, wrap_image: Any) -> Any:
    """Serves four functions, one after another, in some process; gives the server and its image."""

    def chain(processes: list[list[int]], pause: float, **settings: str) -> tuple[Any, Path]:
        others = {letter: NEXT.format(pause=pause, letter=letter) for letter in "bcd"}
        declared = {"inputs": {0: None, 1: 0, 2: 1, 3: 2}, "entry": {"output": 3}}
        image = wrap_image({"a": FIRST} | others, processes, mechanism="pool", **declared)
        return start(image, WAITRESS_THREADS="256", **settings), image

    return chain


def begun(image: Path) -> int:
    return len(list(image.glob("began-*")))


def right(connections: list[http.client.HTTPConnection]) -> bool:
    answers = [each.getresponse().read().decode() for each in connections]
    return answers == [f"{number}bcd" for number in range(AT_ONCE)]


def test_as_many_begin_as_come_with_one_thread_each(chain: Any, eventually: Any) -> None:
    server, image = chain([[0, 1, 2, 3]], pause=0.1)
    with asked(server.port) as connections:
        assert eventually(lambda: begun(image) == AT_ONCE)
        assert server.threads() <= AT_ONCE + IDLE + OWN
        (image / "go").touch()
        assert right(connections)


def test_those_that_run_in_processes_or_wait_for_one_have_no_thread(
    chain: Any, eventually: Any
) -> None:
    server, image = chain([[], [0, 1, 2, 3]], pause=0, pool_concurrency="3")
    with asked(server.port) as connections:
        assert eventually(lambda: begun(image) == 3)
        assert server.request("GET", "/_/health").status == 200
        assert server.threads() <= IDLE + OWN
        (image / "go").touch()
        assert right(connections)
    assert begun(image) == AT_ONCE
    assert len(server.family()) <= 1 + 3
