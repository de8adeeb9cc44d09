"""Objects that go to other wraps by a store: as they were, put once, and gone in the end."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.templates.network import gateways

HOME, FAR, NEAR = "test-home", "test-far", "test-near"
NAMES = (HOME, FAR, NEAR)
#: Notes that it has run; waits, fails or turns bytes round as it is told.
HANDLER = """
import pathlib, time

FOLDER = pathlib.Path({folder!r})

def handle(event, context):
    (FOLDER / "began-{name}").touch()
    while (FOLDER / "hold-{name}").exists():
        time.sleep(0.005)
    if event.body.startswith(b"fail"):
        raise ValueError("as it was told")
    return event.body[::-1], 200, {{"Content-Type": "a/b"}}
"""
#: 0 far takes the request; 1 and 2, which is in a process of its own, take what it gives, near; 3
#: takes the request too; the home's own 4 takes what 1 gives, and 5 all.
INPUTS: dict[int, Any] = {0: None, 1: 0, 2: 0, 3: None, 4: 1}
PLACES = {FAR: [[0]], NEAR: [[1, 3], [2]], HOME: [[4]]}


class Wraps:
    """Three wraps with one store, which call each other `how`: directly or through the gateway."""

    def __init__(self, image: Any, start: Any, gateway: Any, folder: Path) -> None:
        self._image, self._start, self._gateway, self.folder = image, start, gateway, folder
        self._images: dict[str, Path] = {}
        self.servers: dict[str, Any] = {}

    def begin(
        self, url: str, password: str, how: str = "directly", timeout_s: float = 30.0
    ) -> None:
        secrets = self.folder / "secrets"
        secrets.mkdir()
        if how == "directly":
            (secrets / "chiron-direct").write_text("a secret")
        if password:
            (secrets / "chiron-store").write_text(f"{password}\n")
        self._settings = {
            "secrets_dir": str(secrets),
            "chiron_trace_key": "key",
            "chiron_store": url,
        }
        for name, processes in PLACES.items():
            tasks = {task: f"f{task}" for process in processes for task in process}
            self._images[name] = self._image(
                {f: HANDLER.format(folder=str(self.folder), name=f) for f in tasks.values()},
                processes,
                tasks=tasks,
                styles=dict.fromkeys(tasks.values(), "http"),
                name=name,
                mechanism="pool",
                inputs=INPUTS,
                remotes={
                    other: {task: f"f{task}" for process in its for task in process}
                    for other, its in PLACES.items()
                    if other != name
                },
                entry={"output": 4} if name == HOME else None,
                path="store",
                attempts=2,
                timeout_s=timeout_s,
            )
            self.start(name)

    def start(self, name: str) -> None:
        settings = {**self._settings, "gateway_url": self._gateway.url}
        self.servers[name] = self._start(self._images[name], **settings)
        self._gateway.ports[name] = self.servers[name].port

    def ask(self, body: bytes = b"in", **headers: str) -> Any:
        return self.servers[HOME].request(body=body, **headers)

    def hold(self, name: str) -> None:
        (self.folder / f"began-{name}").unlink(missing_ok=True)
        (self.folder / f"hold-{name}").touch()

    def let_go(self, name: str) -> None:
        (self.folder / f"hold-{name}").unlink()

    def has_begun(self, name: str) -> bool:
        return (self.folder / f"began-{name}").exists()


@pytest.fixture
def wraps(wrap_image: Any, start: Any, gateway: Any, tmp_path: Path) -> Wraps:
    folder = tmp_path / "wraps"
    folder.mkdir()
    return Wraps(wrap_image, start, gateway, folder)


@pytest.fixture(scope="module")
def whole(shared_image: Any, shared_start: Any, tmp_path_factory: Any) -> Iterator[Any]:
    """Gives the wraps of a store and a way that all tests have of which nothing is lost."""
    found = dict[tuple[str, str], Wraps]()
    with ExitStack() as gateway_each:

        def whole(place: Any, how: str) -> Wraps:
            if (place.url, how) not in found:
                gateway = gateway_each.enter_context(contextmanager(gateways)())
                folder = tmp_path_factory.mktemp("wraps")
                found[place.url, how] = Wraps(shared_image, shared_start, gateway, folder)
                found[place.url, how].begin(*place, how)
            return found[place.url, how]

        yield whole


Eventually = Callable[..., bool]
BOTH_WAYS = pytest.mark.parametrize("how", ["directly", "through the gateway"])
BY_REDIS = pytest.mark.parametrize(
    "store", [pytest.param("redis", marks=pytest.mark.redis)], indirect=True
)


@pytest.mark.each_once
@BOTH_WAYS
def test_bytes_of_any_size_come_as_they_were_and_the_store_is_empty_then(
    whole: Any, store: Any, how: str, eventually: Eventually
) -> None:
    wraps = whole(store.place, how)
    for size in (0, 1, 70_000, 3_000_000):
        body = os.urandom(size)
        answer = wraps.ask(body)
        assert (answer.status, answer.body) == (200, body[::-1])
        assert answer.headers["Content-Type"] == "a/b"
    assert eventually(lambda: store.names() == [])


@pytest.mark.each_once
@BOTH_WAYS
def test_after_many_executions_at_once_the_store_is_empty(
    whole: Any, store: Any, how: str, eventually: Eventually, in_background: Any
) -> None:
    wraps = whole(store.place, how)
    bodies = [b"%d" % number for number in range(30)]
    answers = [in_background(wraps.ask, body) for body in bodies]
    assert [each.result().body for each in answers] == [body[::-1] for body in bodies]
    assert eventually(lambda: store.names() == [])


@pytest.mark.each_once
@BOTH_WAYS
def test_what_goes_to_another_wrap_is_in_the_store_once_meanwhile(
    whole: Any, store: Any, how: str, eventually: Eventually, in_background: Any
) -> None:
    wraps = whole(store.place, how)
    wraps.hold("f2")
    answer = in_background(wraps.ask)
    assert eventually(lambda: wraps.has_begun("f2"))
    names = store.names()
    (execution,) = {name.partition("/")[0] for name in names}
    assert {f"{execution}/0", f"{execution}/request"} <= set(names)
    assert set(names) <= {f"{execution}/{key}" for key in (0, 1, 2, 3, "request")}
    wraps.let_go("f2")
    assert answer.result().body == b"ni"
    assert eventually(lambda: store.names() == [])


@pytest.mark.each_once
@BOTH_WAYS
def test_a_failure_is_told_and_the_store_is_empty_then(
    whole: Any, store: Any, how: str, eventually: Eventually
) -> None:
    wraps = whole(store.place, how)
    answer = wraps.ask(b"fail")
    assert (answer.status, answer.json["code"]) == (500, "raised")
    assert eventually(lambda: store.names() == [])
    assert wraps.ask().body == b"ni"


@BY_REDIS
def test_what_a_lost_wrap_had_runs_again_and_the_store_is_empty_then(
    wraps: Wraps, store: Any, eventually: Eventually, in_background: Any
) -> None:
    wraps.begin(*store.place)
    wraps.hold("f1")
    answer = in_background(wraps.ask)
    assert eventually(lambda: wraps.has_begun("f1"))
    near = wraps.servers[NEAR].process
    near.kill()
    near.wait()
    wraps.start(NEAR)
    wraps.let_go("f1")
    assert answer.result().body == b"ni"
    assert eventually(lambda: store.names() == [])


@BY_REDIS
def test_what_the_store_loses_is_one_error_that_names_it(
    wraps: Wraps, store: Any, eventually: Eventually, in_background: Any
) -> None:
    wraps.begin(*store.place, "through the gateway")
    assert wraps.ask().body == b"ni"
    assert eventually(lambda: store.names() == [])
    far = wraps.servers[FAR].process
    far.send_signal(signal.SIGSTOP)
    answer = in_background(wraps.ask)
    assert eventually(lambda: any(name.endswith("/request") for name in store.names()))
    store.lose_all()
    far.send_signal(signal.SIGCONT)
    told = answer.result()
    assert (told.status, told.json["code"]) == (500, "store")
    assert told.json["wrap"] in (FAR, NEAR)  # both may have been about to get it
    assert "/request" in told.json["message"] or "NoSuchKey" in told.json["message"]
    assert wraps.ask().body == b"ni"
    assert eventually(lambda: store.names() == [])


def test_a_store_that_is_down_is_one_error_that_names_it(wraps: Wraps, free_port: int) -> None:
    wraps.begin(f"s3://key@127.0.0.1:{free_port}/bucket", "password-of-the-store")
    answer = wraps.ask()
    assert (answer.status, answer.json["code"]) == (500, "store")
    assert f"s3://127.0.0.1:{free_port}" in answer.json["message"]
    assert "key@" not in answer.text and "password-of-the-store" not in answer.text


@BY_REDIS
@pytest.mark.parametrize(("how", "when"), [("directly", "first"), ("through the gateway", "later")])
def test_a_store_that_hangs_is_one_error_at_the_deadline_of_each_request(
    wraps: Wraps, emptied: Any, stalling: Any, how: str, when: str
) -> None:
    port = str(urlsplit(emptied.place.url).port)
    url = emptied.place.url.replace(port, str(stalling.port))
    wraps.begin(url, emptied.place.password, how, timeout_s=300.0)
    if when == "later":
        assert wraps.ask().body == b"ni"
    stalling.stall()
    answer = wraps.ask(X_Chiron_Timeout="1")
    assert (answer.status, answer.json["code"]) == (504, "store")


@BY_REDIS
def test_a_store_that_refuses_the_password_is_one_error_without_it(
    wraps: Wraps, store: Any
) -> None:
    wraps.begin(store.place.url, "not-the-password")
    answer = wraps.ask()
    assert (answer.status, answer.json["code"]) == (500, "store")
    assert "WRONGPASS" in answer.json["message"]
    logs = "".join(server.log.read_text() for server in wraps.servers.values())
    assert "not-the-password" not in answer.text + logs


def test_names_that_come_to_a_wrap_without_a_store_are_an_error() -> None:
    from wrap.cluster import store_path
    from wrap.core.errors import TaskError
    from wrap.values.value import received

    named = received(b"", ["text/plain", "1/2"])
    assert named.missing
    with pytest.raises(TaskError, match="no store"):
        store_path.get(None, [named], time.monotonic() + 1)


def test_messages_have_names_in_the_place_of_what_a_store_has() -> None:
    from wrap.net.messages import Ident, Request
    from wrap.values.value import Object

    request = Request(Ident(), [1], {None: Object("here"), 7: Object("x" * 99, "a/b", "5/7")})
    header, here, there = request.frames()
    assert (here, there) == ("here", "")
    objects = json.loads(header)[5]
    assert objects == [[None, ""], [7, "a/b", "5/7"]]
    _, here, there = request.frames_within()
    assert (here, there) == ("here", "x" * 99)
