"""Durable buckets: what was acknowledged survives kills, and is in one window, in any replica."""

from __future__ import annotations

import http.client
import json
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from chiron.workflow.buckets import parse_buckets

#: After how long a replica that says nothing is taken for dead, in seconds; see
#: `wrap.cluster.durable`.
DEAD_S = 3.0
pytestmark = [
    pytest.mark.redis,
    pytest.mark.parametrize("store", ["redis"], indirect=True),
]
SAME = "def handle(req):\n    return req\n"
#: Appends what fires to a file, a line each; a line before may be torn by a kill.
NOTE = """
import os, time

def handle(req):
    file = os.open({file!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, (chr(10) + req + chr(10)).encode())
    os.close(file)
    return "null"
"""


@pytest.fixture
def begin(emptied: Any, wrap_image: Callable[..., Path], start: Any, tmp_path: Path) -> Any:
    """Starts a wrap whose `last` gets what fires of the bucket `held`, over and over."""
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "chiron-store").write_text(emptied.place.password)
    images = dict[str, Path]()

    def begin(
        held: dict[str, Any],
        first: str = SAME,
        last: str = NOTE,
        url: str = "",
        sink_mib: str = "",
        another: bool = False,
        timeout_s: float = 5.0,
    ) -> Any:
        document = {
            "entry": "events",
            "durable": True,
            "buckets": {
                "events": {"trigger": "immediate", "function": "first"},
                "held": {**held, "function": "last"},
            },
            "functions": {"first": {"gives": {"each": "held"}}},
        }
        workflow = parse_buckets(document, "test")
        numbers = {task.name: number for number, task in enumerate(workflow.tasks)}
        entry = {"output": None, "states": numbers, "buckets": workflow.buckets}
        handlers = {"first": first, "last": last.format(file=str(tmp_path / "fired"))}
        if another:
            shutil.rmtree(images.pop("wrap"))
        if "wrap" not in images:
            images["wrap"] = wrap_image(handlers, entry=entry, timeout_s=timeout_s)
        url = url or emptied.place.url
        settings = {"chiron_store": url, "chiron_trace_key": "key", "WRAP_OBJECTS_MIB": sink_mib}
        return start(images["wrap"], **settings, secrets_dir=str(secrets))

    return begin


@pytest.fixture
def connect(store: Any) -> Callable[[], Any]:
    """Gives a client of the Redis."""
    redis = pytest.importorskip("redis")
    return lambda: redis.Redis.from_url(store.place.url, password=store.place.password)


def fired(tmp_path: Path) -> list[list[Any]]:
    """What has fired, each once: what was killed may have run again, and have torn its line."""
    file = tmp_path / "fired"
    lines = file.read_text().splitlines() if file.exists() else []
    return [json.loads(line) for line in dict.fromkeys(lines) if line.endswith("]")]


def test_what_is_held_outlives_a_kill_and_fires_once(begin, store, tmp_path, eventually):
    server = begin({"trigger": "by-batch-size", "size": 4})
    assert server.request(body="[1, 2]").json == {"held": 2}
    assert server.request(body="3").status == 202
    server.process.kill()
    server.process.wait()
    server = begin({"trigger": "by-batch-size", "size": 4})
    assert server.request(body="[4, 5]").status == 202
    assert eventually(lambda: fired(tmp_path))
    first = fired(tmp_path)[0]  # what was in work when it was killed comes later
    assert len(first) == 4
    assert set(first) < {*range(1, 6)}
    assert server.terminate() == 0
    assert len(fired(tmp_path)) == 1
    (name,) = (name for name in store.names() if name.endswith(":held"))
    server = begin({"trigger": "by-batch-size", "size": 4})
    assert server.request(body="[6, 7, 8]").status == 202
    assert eventually(lambda: name not in store.names())
    assert sorted(item for batch in fired(tmp_path) for item in batch) == [*range(1, 9)]


def test_a_run_that_was_killed_is_begun_anew_and_what_it_emits_is_there_once(
    begin, tmp_path, eventually
):
    asleep = tmp_path / "asleep"
    first = f"""
import time
from pathlib import Path
from chiron_io import emit

def handle(req):
    emit("held", "1")
    if not Path({str(asleep)!r}).exists():
        Path({str(asleep)!r}).touch()
        time.sleep(60)
    return "[2]"
"""
    held = {"trigger": "by-batch-size", "size": 2}
    server = begin(held, first)
    assert server.request(body="0").json == {"held": 1}
    assert eventually(asleep.exists)
    server.process.kill()
    server.process.wait()
    server = begin(held, first)
    assert eventually(lambda: fired(tmp_path))
    assert server.terminate() == 0
    assert fired(tmp_path) == [[1, 2]]


class Sender:
    """Sends events to replicas in turn, each as two lists in a request, until it is ended."""

    def __init__(self, servers: list[Any]) -> None:
        self.servers = servers
        self.acknowledged = list[int]()
        self.refused = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._send)
        self._thread.start()

    def _send(self) -> None:
        number = 0
        while not self._over.is_set():
            events = [*range(number, number + 3)]
            number += 3
            server = self.servers[number // 3 % len(self.servers)]
            try:
                answer = server.request(body=json.dumps([events[:2], events[2:]]))
            except (OSError, http.client.HTTPException):
                self.refused += 1
                continue
            if answer.status == 202:
                self.acknowledged.extend(events)

    def end(self) -> set[int]:
        """What was acknowledged."""
        self._over.set()
        self._thread.join()
        return set(self.acknowledged)


def items_in(tmp_path: Path) -> list[Any]:
    return [item for batch in fired(tmp_path) for item in batch]


def is_empty(store: Any) -> bool:
    """Whether nothing is held, and no session has not ended."""
    parts = [name.split(":", 2)[2] for name in store.names()]
    return not [part for part in parts if part.startswith(("sessions", "held", "offered"))]


def check(known: set[int], store: Any, tmp_path: Path, eventually: Any, seed: str = "") -> None:
    """Nothing acknowledged is lost, nothing is in two windows, and nothing is left."""
    assert eventually(lambda: known.issubset(items_in(tmp_path))), seed
    assert eventually(lambda: is_empty(store)), seed
    items = items_in(tmp_path)
    assert len(items) == len(set(items)), seed
    assert len(known) > 0, seed


def test_whenever_replicas_are_killed_nothing_acknowledged_is_lost_or_counted_twice(
    begin, store, connect, tmp_path, eventually
):
    held = {"trigger": "by-time", "window_ms": 50}
    seed = random.randrange(1 << 30)
    moments = random.Random(seed)
    started = dict[int, Any]()

    def another() -> Any:
        server = started[len(started) + 1] = begin(held)
        return server

    servers = [another() for _ in range(3)]
    sender = Sender(servers)
    for kill in range(4):
        time.sleep(moments.uniform(0.05, 1.0))
        if kill % 2 and (term := connect().get("chiron:test:evaluator")):
            killed = started[int(term.split(b".")[0])]  # they are numbered as they start
        else:
            killed = moments.choice(servers)
        killed.process.kill()
        killed.process.wait()
        if killed in servers:
            servers[servers.index(killed)] = another()
    known = sender.end()
    check(known, store, tmp_path, eventually, f"seed {seed}")


@pytest.mark.slow
@pytest.mark.quiet
def test_the_evaluator_that_is_told_to_end_is_followed_at_once(
    begin, store, connect, tmp_path, eventually
):
    held = {"trigger": "by-time", "window_ms": 50}
    servers = [begin(held), begin(held)]
    assert eventually(lambda: connect().get("chiron:test:evaluator") == b"1.1")
    sender = Sender(servers)
    time.sleep(0.3)
    old = servers.pop(0)
    told = time.monotonic()
    old.process.send_signal(signal.SIGTERM)
    assert eventually(lambda: connect().get("chiron:test:evaluator") == b"2.2")
    before = len(fired(tmp_path))
    assert eventually(lambda: len(fired(tmp_path)) > before + 1)
    assert time.monotonic() - told < DEAD_S / 2
    assert old.process.wait(60) == 0
    check(sender.end(), store, tmp_path, eventually)


def test_what_a_replica_has_not_ended_when_it_is_told_to_end_is_run_by_another_one(
    begin, store, connect, tmp_path, eventually
):
    last = NOTE.replace("):\n", "):\n    time.sleep(0.2)\n")
    held = {"trigger": "by-batch-size", "size": 1}
    servers = [begin(held, last=last), begin(held, last=last)]
    events = [*range(300)]
    assert servers[0].request(body=json.dumps([events])).status == 202
    assert eventually(lambda: len(fired(tmp_path)) > 0)
    assert servers[0].terminate() == 0
    assert len(fired(tmp_path)) < len(events)
    check(set(events), store, tmp_path, eventually)


@pytest.mark.slow
def test_a_replica_that_stood_still_for_long_finds_all_taken_over(
    begin, store, connect, tmp_path, eventually
):
    held = {"trigger": "by-time", "window_ms": 50}
    servers = [begin(held), begin(held)]
    assert eventually(lambda: connect().get("chiron:test:evaluator") == b"1.1")
    sender = Sender(servers)
    time.sleep(0.3)
    os.kill(servers[0].process.pid, signal.SIGSTOP)
    assert eventually(lambda: connect().get("chiron:test:evaluator") == b"2.2")
    os.kill(servers[0].process.pid, signal.SIGCONT)
    assert eventually(lambda: "taken this one for dead" in servers[0].log.read_text())
    before = len(sender.acknowledged)
    assert eventually(lambda: len(sender.acknowledged) > before + 30)
    check(sender.end(), store, tmp_path, eventually)


def test_what_one_replica_has_no_room_for_is_run_by_others(begin, store, tmp_path, eventually):
    last = NOTE.replace("):\n", "):\n    time.sleep(0.05)\n")
    last = last.replace("req + chr(10)", "'%d %s' % (os.getpid(), req) + chr(10)")
    held = {"trigger": "by-batch-size", "size": 1}
    servers = [begin(held, last=last), begin(held, last=last)]
    pids = {server.process.pid for server in servers}

    def runs() -> list[list[str]]:
        file = tmp_path / "fired"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line.split(" ", 1) for line in lines if line]

    sent = 0

    def both_have_run() -> bool:
        """They do as soon as they know of each other."""
        nonlocal sent
        assert servers[0].request(body=json.dumps([[*range(sent, sent + 400)]])).status == 202
        sent += 400
        assert eventually(lambda: len(runs()) == sent)
        return {int(pid) for pid, _ in runs()} == pids

    assert eventually(both_have_run)
    assert sorted(json.loads(items)[0] for _, items in runs()) == [*range(sent)]
    assert eventually(lambda: is_empty(store))


@pytest.mark.slow
def test_what_kills_its_replica_again_and_again_is_set_aside_and_all_else_goes_on(
    begin, store, connect, tmp_path, eventually
):
    held_there = tmp_path / "held-there"
    deadly = (
        "import os, pathlib, subprocess, time\n\ndef handle(req):\n    if 'deadly' in req:\n"
        f"        while not pathlib.Path({str(held_there)!r}).exists():\n"
        "            time.sleep(0.01)\n"
        "        subprocess.run(['kill', '-9', str(os.getpid())])\n    return req\n"
    )
    held = {"trigger": "by-batch-size", "size": 1}
    server = begin(held, deadly)
    assert server.request(body='["deadly"]').status == 202
    held_there.touch()
    client = connect()
    for _ in range(3):  # replicas
        server.process.wait(60)
        server = begin(held, deadly)
    assert eventually(lambda: client.hlen("chiron:test:dead") == 1)
    assert server.request(body="[[1]]").status == 202
    assert eventually(lambda: fired(tmp_path) == [[1]])
    assert eventually(lambda: "1 dead letters" in server.log.read_text())
    assert "chiron_dead_letters 1\n" in server.request("GET", "/metrics").text
    refused = server.request(path="/_/dead-letters", body="show")
    assert refused.status == 403
    ask = partial(server.request, path="/_/dead-letters", X_Chiron_Trace="key")
    (letter,) = ask(body="show").json
    assert (letter["killed"], letter["begins"]) == (3, ['["deadly"]'])
    assert ask(body="other").status == 400
    assert ask(body=f"discard\n{letter['name']}").json == []
    assert eventually(lambda: is_empty(store) and not client.hlen("chiron:test:deaths"))


@pytest.mark.slow
def test_what_is_larger_than_a_replicas_memory_is_set_aside_and_can_run_again(
    begin, store, connect, tmp_path, eventually
):
    asleep = "import time\n\ndef handle(req):\n    time.sleep(60)\n"
    held = {"trigger": "by-batch-size", "size": 2000}
    server = begin(held, asleep, sink_mib="16")
    assert server.request(body=json.dumps([[n] for n in range(2000)])).status == 202
    server.process.kill()
    server.process.wait()
    client = connect()
    server = begin(held, SAME, sink_mib="1", another=True)
    assert eventually(lambda: client.hlen("chiron:test:dead") == 1)
    assert server.terminate() == 0
    server = begin(held, SAME, sink_mib="16", another=True)
    ask = partial(server.request, path="/_/dead-letters", X_Chiron_Trace="key")
    assert [letter["killed"] for letter in ask(body="show").json] == [1]
    assert ask(body="retry").json == []
    assert eventually(lambda: fired(tmp_path))
    assert sorted(fired(tmp_path)[0]) == [*range(2000)]


@pytest.mark.slow
def test_what_buckets_held_is_taken_up_in_pieces_by_a_replica_with_less_memory(
    begin, store, connect, tmp_path, eventually
):
    held = {"trigger": "by-batch-size", "size": 100}
    server = begin({**held, "size": 5000}, sink_mib="16")
    for at in range(0, 4000, 1000):
        assert server.request(body=json.dumps([[*range(at, at + 1000)]])).status == 202
    assert eventually(lambda: connect().hlen("chiron:test:held") == 4000)
    server.process.kill()
    server.process.wait()
    begin(held, sink_mib="1", another=True)
    assert eventually(lambda: sum(map(len, fired(tmp_path))) == 4000)
    assert sorted(items_in(tmp_path)) == [*range(4000)]
    assert eventually(lambda: is_empty(store))


def test_while_redis_hangs_each_request_is_answered_at_its_own_deadline(
    begin, emptied, stalling, tmp_path, eventually
):
    port = str(urlsplit(emptied.place.url).port)
    url = emptied.place.url.replace(port, str(stalling.port))
    server = begin({"trigger": "by-batch-size", "size": 2}, url=url, timeout_s=120.0)
    assert server.request(body="1").status == 202
    stalling.stall()
    begun = time.monotonic()
    answer = server.request(body="2", X_Chiron_Timeout="0.5")
    assert (answer.status, answer.json["code"]) == (504, "store")
    assert url.rpartition("@")[2] in answer.json["message"]
    assert time.monotonic() - begun < 60  # of the wrap's 120 s
    stalling.go_on()
    assert server.request(body="3").status == 202
    assert eventually(lambda: fired(tmp_path))


def test_without_redis_a_durable_wrap_says_so_and_ends(store, wrap_image, run_to_end, free_port):
    document = {
        "entry": "held",
        "durable": True,
        "buckets": {"held": {"trigger": "by-time", "window_ms": 50, "function": "last"}},
    }
    entry = {"output": None, "states": {"last": 0}, "buckets": parse_buckets(document, "t").buckets}
    image = wrap_image({"last": SAME}, entry=entry)
    status, said = run_to_end(image)
    assert status == 1 and "chiron_store" in said
    status, said = run_to_end(image, chiron_store=f"redis://127.0.0.1:{free_port}")
    assert status == 1 and f"store: the store redis://127.0.0.1:{free_port}" in said


@pytest.mark.slow
def test_the_end_of_the_keepers_thread_ends_the_wrap_and_nothing_is_lost(
    begin, tmp_path, eventually
):
    answered = tmp_path / "answered"
    raises = f"""
        import ctypes, threading, time
        from pathlib import Path

        def handle(req):
            if not Path("raised").exists():
                Path("raised").touch()
                while not Path({str(answered)!r}).exists():
                    time.sleep(0.01)
                durable = next(each for each in threading.enumerate() if each.name == "durable")
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(durable.ident), ctypes.py_object(ZeroDivisionError)
                )
                threading.Event().wait()
            return req
    """
    server = begin({"trigger": "by-batch-size", "size": 1}, raises)
    assert server.request(body="[1]").status == 202
    answered.touch()
    assert server.process.wait(60) == 1
    said = server.log.read_text()
    assert "ZeroDivisionError" in said and "the thread durable has ended" in said
    begin({"trigger": "by-batch-size", "size": 1})
    assert eventually(lambda: fired(tmp_path) == [[1]])
