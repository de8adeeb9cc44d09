"""Wraps, their processes and their connections end under load, and all answers are right."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
import requests

from chiron.cli.place import BUILDERS
from chiron.deployment.caller import Caller
from chiron.deployment.launcher import Launcher
from chiron.openfaas.client import Gateway

#: What is killed is found by its name, whoever on this machine has started it.
pytestmark = [pytest.mark.slow, pytest.mark.quiet]

TASKS = "abcde"
HANDLER = "import time\n\n\ndef handle(req):\n    time.sleep(0.01)\n    return '{name}' + req\n"
CLIENTS, EACH = 4, 50
#: Answers to each client between two losses, so that no execution has two.
BETWEEN = 3
TIMEOUT_S = 60
_PIDFD_GETFD = 438
_LIBC = ctypes.CDLL(None, use_errno=True)


def server(name: str) -> psutil.Process:
    """The first process of a function's only replica, be it in a container."""
    return min(processes(name), key=psutil.Process.create_time)


def processes(name: str) -> list[psutil.Process]:
    return [process for process in psutil.process_iter() if runs(process, name)]


def runs(process: psutil.Process, name: str) -> bool:
    with contextlib.suppress(psutil.Error):
        named = process.environ().get("OPENFAAS_NAME") == name
        return named and "index.py" in process.cmdline()
    return False


def kill_wrap(name: str, _: str) -> None:
    server(name).kill()


def kill_worker(name: str, _: str) -> None:
    [fork_server] = server(name).children()
    fork_server.children()[0].kill()


def cut_connections(name: str, url: str) -> None:
    """Reset all connections that other wraps have made to this one, as a broken network does."""
    told = requests.get(f"{url}/function/{name}/_/address", timeout=TIMEOUT_S).text
    host, port = told.split()
    cut = 0
    for each in sockets(server(name).pid):
        with each, contextlib.suppress(OSError):
            if each.getsockname() == (host, int(port)) and each.getpeername():
                nowhere = bytes(16)  # an address of the family AF_UNSPEC
                cut += _LIBC.connect(each.fileno(), nowhere, len(nowhere)) == 0
    assert cut


def sockets(pid: int) -> Iterator[socket.socket]:
    """Duplicates of a process's sockets."""
    process = os.pidfd_open(pid)
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            duplicate = _LIBC.syscall(_PIDFD_GETFD, process, int(link.name), 0)
            if duplicate >= 0 and stat.S_ISSOCK(os.fstat(duplicate).st_mode):
                yield socket.socket(fileno=duplicate)
            elif duplicate >= 0:
                os.close(duplicate)
    os.close(process)


LOSSES = (kill_wrap, kill_worker, cut_connections)


class Load:
    """Clients that ask for a number of answers each."""

    def __init__(self, url: str, entry: str) -> None:
        self._url, self._entry = url, entry
        self.answers: list[list[tuple[int, str]]] = [[] for _ in range(CLIENTS)]
        self.asked: list[list[str]] = [
            [f" {client}.{number}" for number in range(EACH)] for client in range(CLIENTS)
        ]
        self._more = threading.Condition()

    def run(self, client: int) -> None:
        with Caller(self._url) as caller:
            for body in self.asked[client]:
                reply = caller.call(self._entry, body.encode())
                with self._more:
                    self.answers[client].append((reply.status, reply.body.decode()))
                    self._more.notify()

    def await_each(self) -> bool:
        """Wait until no request of before is on its way; whether there are more to come."""
        wanted = [len(answers) + BETWEEN for answers in self.answers]
        if max(wanted) >= EACH:
            return False
        with self._more:
            for answers, count in zip(self.answers, wanted, strict=True):
                assert self._more.wait_for(lambda a=answers, c=count: len(a) >= c, TIMEOUT_S)
        return max(map(len, self.answers)) < EACH


def test_of_200_executions_none_is_lost_with_wraps_workers_and_connections(
    backend, embedded, write_folder, plan_by_hand, tmp_path
):
    home, far, near = (f"lost-{backend}-{each}" for each in ("home", "far", "near"))
    workflow = {
        "tasks": {task: task for task in TASKS},
        "edges": [list(edge) for edge in pairwise(TASKS)],
    }
    code = {task: HANDLER.format(name=task) for task in TASKS}
    folder = write_folder(tmp_path / "chain", workflow, code, {})
    places = {home: [["a", "e"]], far: [["b"], ["c"]], near: [[], ["d"]]}
    plan = plan_by_hand(places, "pool", workflow="chain", attempts=2)
    losses = []
    with (
        Gateway(embedded.url) as gateway,
        Launcher(gateway, BUILDERS[backend]).launch(folder.workflow, folder, plan) as deployment,
        ThreadPoolExecutor(CLIENTS) as threads,
    ):
        deployment.invoke(b"")
        load = Load(embedded.url, home)
        clients = [threads.submit(load.run, client) for client in range(CLIENTS)]
        turns = [(lose, name) for lose in LOSSES for name in (far, near)]
        while load.await_each():
            lose, name = turns[len(losses) % len(turns)]
            lose(name, embedded.url)
            losses.append(lose)
        for client in clients:
            client.result()
        calls = sum(gateway.describe(name).invocation_count for name in (far, near))
    for bodies, answers in zip(load.asked, load.answers, strict=True):
        assert answers == [(200, "edcba" + body) for body in bodies]
    assert set(losses) == set(LOSSES)
    assert calls < CLIENTS * EACH  # they ask where wraps are, now and then
