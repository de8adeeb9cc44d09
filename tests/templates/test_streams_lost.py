"""Where a stream breaks, what it connects runs again, and nothing else."""

from __future__ import annotations

import os
import signal
import time
import zlib
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

MEGABYTE = 1 << 20
#: What a writes, megabytes through b and c.
SIZE = 24
#: a -> b =stream=> c =stream=> d -> e
A, B, C, D, E = range(5)
NAMES = ("test-home", "test-far", "test-near")

HEAD = """
import os, pathlib, time, zlib
from chiron_io import open_input, open_output

FOLDER = pathlib.Path({folder!r})

def began(name):
    with open(FOLDER / f"ran-{{name}}", "a") as ran:
        ran.write("x")
    (FOLDER / f"pid-{{name}}").write_text(str(os.getpid()))

def in_the_middle(name, number):
    if number == 8:
        (FOLDER / f"middle-{{name}}").touch()
        while (FOLDER / f"hold-{{name}}").exists():
            time.sleep(0.005)
"""
HANDLERS = {
    "a": """
def handle(req):
    began("a")
    time.sleep(0.3)
    return req
""",
    "b": """
def handle(req):
    began("b")
    with open_output() as out:
        for number in range(int(req)):
            in_the_middle("b", number)
            out.write(bytes([number % 251]) * (1 << 20))
""",
    "c": """
def handle(req):
    began("c")
    number = 0
    with open_input() as stream, open_output() as out:
        while data := stream.read(1 << 20):
            in_the_middle("c", number)
            out.write(data)
            number += 1
""",
    "d": """
def handle(req):
    began("d")
    found = number = 0
    with open_input() as stream:
        while data := stream.read(1 << 20):
            in_the_middle("d", number)
            number += 1
            found = zlib.crc32(data, found)
    return str(found)
""",
    "e": """
def handle(req):
    began("e")
    return req
""",
}


def reference() -> str:
    found = 0
    for number in range(SIZE):
        found = zlib.crc32(bytes([number % 251]) * MEGABYTE, found)
    return str(found)


class Chain:
    """The five tasks, over so many wraps and processes."""

    def __init__(self, image: Any, start: Any, gateway: Any, folder: Path) -> None:
        self._image, self._start, self._gateway, self.folder = image, start, gateway, folder
        self._images: dict[str, Path] = {}
        self.servers: dict[str, Any] = {}
        self.place: dict[int, tuple[str, int]] = {}
        secrets = folder / "secrets"
        secrets.mkdir()
        (secrets / "chiron-direct").write_text("a secret")

    def begin(
        self,
        place: dict[int, tuple[str, int]],
        mechanism: str,
        attempts: int = 2,
        timeout_s: float = 60.0,
    ) -> None:
        self.place = place
        names = [name for name in NAMES if any(where == name for where, _ in place.values())]
        head = HEAD.format(folder=str(self.folder))
        for name in names:
            own = {task: "abcde"[task] for task, (where, _) in place.items() if where == name}
            last = max(process for where, process in place.values() if where == name)
            others = [other for other in names if other != name]
            self._images[name] = self._image(
                {function: head + HANDLERS[function] for function in own.values()},
                [[task for task in own if place[task][1] == p] for p in range(last + 1)],
                tasks=own,
                name=name,
                mechanism=mechanism,
                inputs={A: None, B: A, C: [], D: [], E: D},
                buckets=[([], [A]), ([A], [B]), ([B], [C]), ([C], [D]), ([D], [E])],
                streams={C: {"b": B}, D: {"c": C}},
                live={B: [C], C: [D]},
                passing=[B, C],
                live_buckets=[([], [A]), ([A], [B, C, D]), ([D], [E])],
                remotes={
                    other: {t: "abcde"[t] for t, (where, _) in place.items() if where == other}
                    for other in others
                },
                entry={"output": E} if name == NAMES[0] else None,
                attempts=attempts,
                timeout_s=timeout_s,
            )
        for name in names:
            self.start(name)

    def start(self, name: str) -> None:
        settings = {"secrets_dir": str(self.folder / "secrets")}
        server = self._start(self._images[name], gateway_url=self._gateway.url, **settings)
        self.servers[name] = server
        self._gateway.ports[name] = server.port

    def ask(self) -> Any:
        return self.servers[NAMES[0]].request(body=str(SIZE))

    @property
    def ran(self) -> list[int]:
        """How often each task began."""
        files = (self.folder / f"ran-{each}" for each in "abcde")
        return [len(each.read_text()) if each.exists() else 0 for each in files]

    def counts(self) -> list[int]:
        """The descriptors, threads and processes of each wrap."""
        found = [(s.descriptors(), s.threads(), len(s.family())) for s in self.servers.values()]
        return [each for its in found for each in its]

    def hold(self, task: int) -> None:
        """Have it wait in the middle of its stream."""
        (self.folder / f"hold-{'abcde'[task]}").touch()

    def let_go(self, task: int) -> None:
        (self.folder / f"hold-{'abcde'[task]}").unlink()

    def is_in_the_middle(self, task: int) -> bool:
        return (self.folder / f"middle-{'abcde'[task]}").exists()

    def kill(self, lost: str, task: int) -> None:
        """Kill the process of a task, or its wrap, in whose place another one is started."""
        if lost == "process":
            os.kill(int((self.folder / f"pid-{'abcde'[task]}").read_text()), signal.SIGKILL)
            return
        name, _ = self.place[task]
        self.servers[name].process.kill()
        self.servers[name].process.wait()
        self.start(name)


@pytest.fixture
def chain(wrap_image: Any, start: Any, gateway: Any, tmp_path: Path) -> Chain:
    folder = tmp_path / "chain"
    folder.mkdir()
    return Chain(wrap_image, start, gateway, folder)


#: Where the tasks run: each that is killed in a process of its own.
PLACES = {
    "one wrap": dict(enumerate(zip([NAMES[0]] * 5, [0, 1, 2, 3, 0], strict=True))),
    "two wraps": {
        A: (NAMES[0], 0),
        B: (NAMES[0], 1),
        C: (NAMES[1], 1),
        D: (NAMES[1], 2),
        E: (NAMES[0], 0),
    },
    "three wraps": {
        A: (NAMES[0], 0),
        B: (NAMES[1], 1),
        C: (NAMES[2], 1),
        D: (NAMES[0], 1),
        E: (NAMES[1], 0),
    },
}


def in_the_middle(
    chain: Chain, killed: int, in_background: Any, eventually: Callable[..., bool]
) -> Future[Any]:
    """The answer to a request whose streams are half read."""
    chain.hold(killed)
    answer: Future[Any] = in_background(chain.ask)
    assert eventually(lambda: chain.is_in_the_middle(killed) or answer.done())
    assert not answer.done()
    return answer


@pytest.mark.each_once
@pytest.mark.parametrize("mechanism", ["fork", "pool"])
@pytest.mark.parametrize(
    ("lost", "places", "killed"),
    [
        *(("process", places, killed) for places in PLACES for killed in (B, C, D)),
        ("wrap", "two wraps", D),
        ("wrap", "three wraps", B),
        ("wrap", "three wraps", C),
    ],
)
def test_what_is_killed_has_its_streams_run_again_and_nothing_else(
    chain: Chain,
    lost: str,
    places: str,
    killed: int,
    mechanism: str,
    in_background: Any,
    eventually: Callable[..., bool],
) -> None:
    chain.begin(PLACES[places], mechanism)
    answer = in_the_middle(chain, killed, in_background, eventually)
    chain.kill(lost, killed)
    chain.let_go(killed)
    assert answer.result().text == reference()
    assert chain.ran == [1, 2, 2, 2, 1]


@pytest.mark.parametrize("lost", ["process", "wrap"])
def test_with_one_attempt_it_is_an_error_that_is_named_soon(
    chain: Chain, lost: str, in_background: Any, eventually: Callable[..., bool]
) -> None:
    chain.begin(PLACES["two wraps"], "pool", attempts=1)
    answer = in_the_middle(chain, D, in_background, eventually)
    if lost == "process":
        chain.kill("process", D)
    else:
        chain.servers[NAMES[1]].process.kill()
    # D is not let go: its process outlives the wrap's main process by a moment, and could read all.
    said = answer.result()
    assert said.status == 500
    assert said.json["code"] == {"process": "process-died", "wrap": "stream-lost"}[lost]
    assert chain.ran == [1, 1, 1, 1, 0]


def test_what_ran_again_leaves_nothing_behind(
    chain: Chain, in_background: Any, eventually: Callable[..., bool]
) -> None:
    chain.begin(PLACES["two wraps"], "pool")
    before = list[int]()
    for number in range(5):
        (chain.folder / "middle-c").unlink(missing_ok=True)
        answer = in_the_middle(chain, C, in_background, eventually)
        chain.kill("process", C)
        chain.let_go(C)
        assert answer.result().text == reference()
        if number == 1:
            time.sleep(0.5)  # what ends with it has ended then
            before = chain.counts()
    assert chain.ran == [5, 10, 10, 10, 5]
    most = [each + 2 for each in before]
    assert eventually(
        lambda: all(one <= two for one, two in zip(chain.counts(), most, strict=True))
    )
