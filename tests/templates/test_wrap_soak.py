"""Ten thousand requests, sixteen at once, while workers and the fork server are killed."""

from __future__ import annotations

import http.client
import json
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import psutil
import pytest

ECHO = "def handle(req):\n    return req\n"
REQUESTS, AT_ONCE = 10_000, 16
#: After how many requests memory is looked at first, a worker is killed, and the fork server is.
WARM, WORKER, FORK_SERVER = 2_000, 4_000, 7_000
PROCESSES = {
    "threads": [[0, 1, 2]],
    "fork": [[0], [1, 2]],
    "pool": [[0], [1, 2]],
}


def kill_a_worker(server: Any, eventually: Any) -> None:
    """SIGKILL for a process that the fork server has forked; in fork they come and go."""

    def killed() -> bool:
        for process in server.fork_server().children():
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
            return True
        return False

    assert eventually(killed)


def loop_stalls(server: Any) -> int:
    """How many events have had the event loop compute for over 5 ms."""
    lines = server.request("GET", "/metrics").text.splitlines()
    (count,) = (each for each in lines if each.startswith('chiron_loop_stalls_total{cause="cpu"}'))
    return int(count.rpartition(" ")[2])


def ask(server: Any, requests: int, at: dict[int, Callable[[], None]]) -> Counter[str]:
    """How `requests` requests ended; before the one numbered as in `at`, that is done."""
    numbers, ended, lock = count(), Counter[str](), threading.Lock()

    def client() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        while (number := next(numbers)) < requests:
            if number in at:
                at[number]()
            connection.request("POST", "/", str(number))
            response = connection.getresponse()
            body = response.read()
            right = (response.status, body) == (200, f"[{number},{number}]".encode())
            with lock:
                ended["right" if right else json.loads(body)["code"]] += 1
        connection.close()

    with ThreadPoolExecutor(AT_ONCE) as clients:
        for future in [clients.submit(client) for _ in range(AT_ONCE)]:
            future.result()
    return ended


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mechanism", PROCESSES)
def test_under_load_only_what_a_victim_held_is_lost_and_nothing_leaks(
    mechanism: str, start: Any, wrap_image: Any, eventually: Any
) -> None:
    handlers = dict.fromkeys(("one", "two", "three"), ECHO)
    declared = {"inputs": {0: None, 1: None, 2: [0, 1]}, "entry": {"output": 2}}
    kind = "fork" if mechanism == "threads" else mechanism
    declared |= {"mechanism": kind, "timeout_s": 60.0}
    image = wrap_image(handlers, PROCESSES[mechanism], **declared)
    server = start(image, WAITRESS_THREADS="16", pool_concurrency="4")
    main = psutil.Process(server.process.pid)
    memory: list[int] = []
    at: dict[int, Callable[[], None]] = {WARM: lambda: memory.append(main.memory_info().rss)}
    if mechanism != "threads":
        at[WORKER] = lambda: kill_a_worker(server, eventually)
        at[FORK_SERVER] = lambda: server.fork_server().kill()
    ended = ask(server, REQUESTS, at)
    memory.append(main.memory_info().rss)
    stalls = loop_stalls(server)
    kib = [size >> 10 for size in memory]
    print(f"{mechanism}: {dict(ended)}, memory {kib} KiB, {stalls} stalls")
    lost = ended["process-died"]
    assert ended == Counter({"right": REQUESTS - lost, "process-died": lost}) - Counter()
    assert lost <= (0 if mechanism == "threads" else 1 + AT_ONCE)
    assert memory[1] < 1.05 * memory[0]
    assert stalls == 0
    most = 1 + (4 if mechanism == "pool" else 0)  # the fork_server, workers
    assert eventually(lambda: len(server.family()) <= most), server.family()
    assert ask(server, 100, {}) == Counter(right=100)
