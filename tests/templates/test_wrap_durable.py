"""Durable buckets: what was acknowledged survives kills, and is in one window."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from workflow.buckets import parse_buckets

pytestmark = [
    pytest.mark.redis,
    pytest.mark.parametrize("store", ["redis"], indirect=True),
]
SAME = "def handle(req):\n    return req\n"
#: Appends what fires to a file, a line each.
NOTE = """
import os

def handle(req):
    file = os.open({file!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, (req + chr(10)).encode())
    os.close(file)
    return "null"
"""


@pytest.fixture
def begin(store: Any, wrap_image: Callable[..., Path], start: Any, tmp_path: Path) -> Any:
    """Starts a wrap whose `last` gets what fires of the bucket `held`, over and over."""
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "chiron-store").write_text(store.place.password)
    images = dict[str, Path]()

    def begin(held: dict[str, Any], first: str = SAME) -> Any:
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
        handlers = {"first": first, "last": NOTE.format(file=str(tmp_path / "fired"))}
        if "wrap" not in images:
            images["wrap"] = wrap_image(handlers, entry=entry, timeout_s=5.0)
        return start(images["wrap"], chiron_store=store.place.url, secrets_dir=str(secrets))

    yield begin
    store.lose_all()


def fired(tmp_path: Path) -> list[list[Any]]:
    """What has fired, each once: what was killed may have run again."""
    file = tmp_path / "fired"
    lines = file.read_text().splitlines() if file.exists() else []
    return [json.loads(line) for line in dict.fromkeys(lines)]


def test_what_is_held_outlives_a_kill_and_fires_once(begin, store, tmp_path, eventually):
    server = begin({"trigger": "by-batch-size", "size": 4})
    assert server.request(body="[1, 2]").json == {"held": 2}
    assert server.request(body="3").status == 202
    server.process.kill()
    server.process.wait()
    server = begin({"trigger": "by-batch-size", "size": 4})
    assert server.request(body="[4, 5]").status == 202
    assert eventually(lambda: fired(tmp_path))
    assert sorted(fired(tmp_path)[0]) in ([1, 2, 3, 4], [1, 2, 3, 5])
    assert server.terminate() == 0
    assert len(fired(tmp_path)) == 1
    (name,) = (name for name in store.names() if name.endswith(":held"))
    server = begin({"trigger": "by-batch-size", "size": 4})
    assert server.request(body="[6, 7, 8]").status == 202
    assert eventually(lambda: name not in store.names())
    assert sorted(item for batch in fired(tmp_path) for item in batch) == [*range(1, 9)]


def test_a_run_that_was_killed_is_begun_anew_from_what_was_acknowledged(
    begin, tmp_path, eventually
):
    asleep = tmp_path / "asleep"
    first = (
        "import time\nfrom pathlib import Path\n\n"
        f"def handle(req):\n    if not Path({str(asleep)!r}).exists():\n"
        f"        Path({str(asleep)!r}).touch()\n        time.sleep(60)\n    return req\n"
    )
    server = begin({"trigger": "by-batch-size", "size": 2}, first)
    assert server.request(body="[[1, 2]]").json == {"held": 1}
    assert eventually(asleep.exists)
    server.process.kill()
    server.process.wait()
    begin({"trigger": "by-batch-size", "size": 2}, first)
    assert eventually(lambda: fired(tmp_path) == [[1, 2]])


def test_what_a_run_that_was_killed_had_emitted_is_there_once(begin, tmp_path, eventually):
    asleep = tmp_path / "asleep"
    first = (
        "import time\nfrom pathlib import Path\nfrom chiron_io import emit\n\n"
        f"def handle(req):\n    emit('held', '1')\n    if not Path({str(asleep)!r}).exists():\n"
        f"        Path({str(asleep)!r}).touch()\n        time.sleep(60)\n    return '[2]'\n"
    )
    server = begin({"trigger": "by-batch-size", "size": 2}, first)
    assert server.request(body="0").json == {"held": 1}
    assert eventually(asleep.exists)
    server.process.kill()
    server.process.wait()
    server = begin({"trigger": "by-batch-size", "size": 2}, first)
    assert eventually(lambda: fired(tmp_path))
    assert server.terminate() == 0
    assert fired(tmp_path) == [[1, 2]]


def test_what_has_been_taken_over_keeps_nothing_any_more(begin, tmp_path, eventually):
    old = begin({"trigger": "by-batch-size", "size": 3})
    assert old.request(body="[1, 2]").status == 202
    new = begin({"trigger": "by-batch-size", "size": 3})
    answers = list[int]()

    def ask() -> None:
        try:
            answers.append(old.request(body="9").status)
        except (OSError, http.client.HTTPException):
            answers.append(0)

    asking = threading.Thread(target=ask)
    asking.start()
    assert eventually(lambda: "another replica has taken over" in old.log.read_text())
    assert new.request(body="3").status == 202
    assert eventually(lambda: [sorted(batch) for batch in fired(tmp_path)] == [[1, 2, 3]])
    old.process.kill()
    asking.join()
    assert 202 not in answers


def test_whenever_it_is_killed_nothing_acknowledged_is_lost_or_counted_twice(
    begin, store, tmp_path, eventually
):
    held = {"trigger": "by-time", "window_ms": 50}
    seed = random.randrange(1 << 30)
    moments = random.Random(seed)
    acknowledged, over = list[int](), threading.Event()
    servers = [begin(held)]

    def send() -> None:
        number = 0
        while not over.is_set():
            events = [*range(number, number + 3)]
            number += 3
            try:
                answer = servers[-1].request(body=json.dumps([events[:2], events[2:]]))
            except (OSError, http.client.HTTPException):
                continue
            if answer.status == 202:
                acknowledged.extend(events)

    sender = threading.Thread(target=send)
    sender.start()
    for _ in range(6):
        time.sleep(moments.uniform(0.05, 0.6))
        servers[-1].process.kill()
        servers[-1].process.wait()
        servers.append(begin(held))
    over.set()
    sender.join()
    known = set(acknowledged)
    assert eventually(
        lambda: known.issubset(item for batch in fired(tmp_path) for item in batch)
    ), f"seed {seed}"
    assert eventually(lambda: len(store.names()) == 1), f"seed {seed}"  # whose it is
    items = [item for batch in fired(tmp_path) for item in batch]
    assert len(items) == len(set(items)), f"seed {seed}"
    assert len(known) > 0


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
