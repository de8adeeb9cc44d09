"""A process that a handler forks answers nobody, however it goes on, wherever the handler runs."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from wrap.net import framing
from wrap.net.messages import Ident, Request, Result
from wrap.values.value import Object
from wrap.workers.worker import WorkerDiedError, WorkerProcess

from chiron.generator.wrap_entry import WRAP
from chiron.templates import TEMPLATES

HANDLER = """
    import multiprocessing, os, subprocess, sys, threading, time
    from concurrent.futures import ThreadPoolExecutor

    def handle(req):
        how, _, number = req.partition(" ")
        pid = fork(how)
        if pid == 0:
            if how == "raises": raise RuntimeError("in the child")
            if how == "exits": sys.exit(7)
            if how == "_exits": os._exit(5)
            if how == "prints": print("the child was here")
            if how == "sleeps":
                os.setsid()
                time.sleep(600)
            return "the child's"
        if how in STATUS:
            left = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            assert left == STATUS[how], left
        return f"{pid} {number}" if how == "sleeps" else req

    STATUS = {"returns and is awaited": 0, "raises": 1, "exits": 7, "_exits": 5, "prints": 0}

    def fork(how):
        if how == "thread":
            thread = threading.Thread(target=os.fork)
            thread.start()
            thread.join()
            return 1
        if how == "multiprocessing":
            with ONE:  # it looks after the children of all threads, and not safely so
                multiprocess()
            return 1
        if how == "before an exec":
            subprocess.run(["true"], preexec_fn=lambda: None, check=True)
            return 1
        if how == "pty": return os.forkpty()[0]
        pid = os.fork()
        if how == "twice" and pid == 0: os.fork()
        return pid

    ONE = threading.Lock()

    def multiprocess():
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        told = context.Process(target=theirs.send, args=("told",))
        told.start()
        assert ours.recv() == "told"
        told.join()
        asleep = context.Process(target=time.sleep, args=(600,))
        asleep.start()
        asleep.terminate()
        asleep.join()
        assert (told.exitcode, asleep.exitcode) == (0, -15)
"""
#: The fork that a streaming body makes: only the plain runner hands a body on piece by piece.
STREAM = """
    import os
    from flask import Response

    def handle(req):
        def pieces():
            yield "a"
            pid = os.fork()
            yield "b" if pid else "the child's"
            yield req
        return Response(pieces())
"""
WAYS = (
    "returns", "returns and is awaited", "raises", "exits", "_exits", "prints", "thread", "pty",
    "twice", "multiprocessing", "before an exec",
)  # fmt: skip
PLACES = ("main", "several in fork", "pool", "plain")
CLIENTS, EACH = 2, 2

Place = Callable[[str], Any]


@pytest.fixture
def place(start: Any, wrap_image: Any, plain_image: Any) -> Iterator[Place]:
    """Serves the handler in some place."""
    servers = []

    def place(where: str) -> Any:
        if where == "plain":
            servers.append(start(plain_image(HANDLER)))
            return servers[-1]
        mechanism = "pool" if where.endswith("pool") else "fork"
        several = where.startswith("several")
        tasks = [0, 1] if several else [0]
        processes = [tasks] if where.endswith("main") else [[], tasks]
        handlers = {"one": HANDLER, "other": "def handle(req):\n    return 'other'\n"}
        names = list(handlers)[: len(tasks)]
        image = wrap_image(
            {name: handlers[name] for name in names},
            processes,
            mechanism=mechanism,
            entry={"output": 0},
        )
        servers.append(start(image, pool_concurrency="2"))
        return servers[-1]

    yield place
    for server in servers:
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in server.family():
                process.kill()


def answers(server: Any, texts: list[str]) -> list[tuple[int, str]]:
    """Status and body of a request for each of `texts`, one after another over one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    found = []
    with contextlib.closing(connection):
        for text in texts:
            connection.request("POST", "/", text)
            response = connection.getresponse()
            found.append((response.status, response.read().decode()))
    return found


def living(server: Any) -> int:
    """Processes below the server that still run; one whose parent did not wait does not."""
    found = 0
    for process in server.family():
        with contextlib.suppress(psutil.NoSuchProcess):
            found += process.status() != psutil.STATUS_ZOMBIE
    return found


@pytest.mark.parametrize("where", PLACES)
def test_every_answer_is_the_parents_and_no_child_goes_on(where, place, in_background, eventually):
    server = place(where)
    most = {"plain": 0, "pool": 3}.get(where, 1)  # the fork server, ...
    for way in WAYS:
        asked = [[f"{way} {client}-{n}" for n in range(EACH)] for client in range(CLIENTS)]
        futures = [in_background(answers, server, texts) for texts in asked]
        found = [future.result(60) for future in futures]
        assert found == [[(200, text) for text in texts] for texts in asked]
        assert eventually(lambda: living(server) <= most), way
    assert server.log.read_text().count("the child was here") == CLIENTS * EACH


@pytest.mark.parametrize("runner", ["wrap", "plain"])
def test_a_module_that_forks_while_it_is_imported_is_served_once(
    runner: str, start: Any, wrap_image: Any, plain_image: Any, eventually: Any
) -> None:
    forks = "import os\nos.fork()\ndef handle(req):\n    return str(os.getpid())\n"
    entry = {"output": 0}
    image = plain_image(forks) if runner == "plain" else wrap_image({"one": forks}, entry=entry)
    server = start(image)
    assert {server.request().text for _ in range(20)} == {str(server.process.pid)}
    assert eventually(lambda: living(server) == int(runner == "wrap"))  # the fork server


def test_what_a_forked_process_leaves_unwaited_for_is_reaped(start, wrap_image, eventually):
    leaves = "import os\ndef handle(req):\n    return str(os.fork() or os._exit(0))\n"
    entry = {"output": 0}
    server = start(wrap_image({"one": leaves}, [[], [0]], entry=entry))
    left = [int(server.request().text) for _ in range(5)]
    assert eventually(lambda: not any(psutil.pid_exists(pid) for pid in left))


class Sent:
    """The two ends of the socket to a further process, which the test is."""

    def __init__(self) -> None:
        ours, self.theirs = socket.socketpair()
        self.process = WorkerProcess(ours, lambda: "was killed", 1 << 20)
        self.number = 5
        self.process.post(Request(Ident(number=self.number), [0, 1], {None: Object("x")}))

    def receive(self, number: int, task: int) -> list[Any]:
        result = Result(number, task, "one", "wrap", 1, 0.0, 0.0, output=Object("an answer"))
        framing.write(self.theirs, result.frames())
        return self.process.receive()


@pytest.fixture
def sent() -> Iterator[Sent]:
    ends = Sent()
    with ends.theirs:
        yield ends
    ends.process.close()


@pytest.mark.parametrize(("later", "task"), [(-1, 0), (1, 0), (0, 7), (0, 1)])
def test_the_result_of_another_execution_is_none(sent: Sent, later: int, task: int) -> None:
    """Nor is a second one of the same."""
    assert [result.task for result in sent.receive(sent.number, 1)] == [1]
    with pytest.raises(WorkerDiedError, match="another execution"):
        sent.receive(sent.number + later, task)
    assert sent.process.owed == {0}


FORGER = """
    import json, os, socket, stat, struct

    def handle(req):
        if req != "forges":
            return req
        for name in os.listdir("/proc/self/fd"):
            descriptor = int(name)
            try:
                channel = socket.socket(fileno=os.dup(descriptor))
                channel.getpeername()
            except OSError:
                continue
            result = [1, 0, "one", "w", 1, 0.0, 0.0, ""]
            for frame in (json.dumps(result).encode(), b"forged"):
                channel.sendall(struct.pack("!I", len(frame)) + frame)
        return "right"
"""


def test_a_process_that_answers_another_execution_is_replaced(start: Any, wrap_image: Any) -> None:
    image = wrap_image({"one": FORGER}, [[], [0]], mechanism="pool", entry={"output": 0})
    server = start(image, pool_concurrency="1")
    for number in range(2):
        assert server.request(body="forges").json["code"] == "process-died"
        assert server.request(body=f"{number}").text == f"{number}"


def test_a_body_that_forks_while_it_is_sent_is_sent_once(
    start: Any, plain_image: Any, in_background: Any, eventually: Any
) -> None:
    server = start(plain_image(STREAM))
    asked = [[f"{client}-{n}" for n in range(EACH)] for client in range(CLIENTS)]
    futures = [in_background(answers, server, texts) for texts in asked]
    found = [future.result(60) for future in futures]
    assert found == [[(200, f"ab{text}") for text in texts] for texts in asked]
    assert eventually(lambda: living(server) == 0)


@pytest.mark.parametrize("where", ["main", "plain"])
def test_a_child_that_stays_holds_no_connection_no_port_and_no_further_process(
    where: str, place: Place, eventually: Any
) -> None:
    """The fork server and all that it forked end when the server's end of their sockets closes."""
    server = place(where)
    others = [server.fork_server()] if where == "main" else []
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        head = "POST / HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: 8\r\n\r\n"
        connection.sendall(f"{head}sleeps 1".encode())
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))  # to its end
    child = psutil.Process(int(answer.split()[-2]))
    try:
        server.process.kill()
        server.process.wait(30)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", server.port), timeout=30)
        assert eventually(lambda: not any(each.is_running() for each in others))
        assert child.is_running()
    finally:
        child.kill()


@pytest.mark.parametrize("where", ["pool", "fork"])
def test_a_worker_that_dies_is_noticed_though_its_child_stays(where, start, wrap_image, eventually):
    handler = """
        import os, time

        def handle(req):
            pid = os.fork()
            if pid == 0:
                os.setsid()
                time.sleep(600)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG)
            while os.getsid(pid) != pid:
                pass
            print("child", pid, flush=True)
            os._exit(3)
    """
    entry = {"output": 0}
    image = wrap_image({"one": handler}, [[], [0]], mechanism=where, entry=entry)
    server = start(image)
    answer = server.request()
    child = int(server.log.read_text().split("child ")[1].split()[0])
    try:
        assert answer.json["code"] == "process-died"
        assert "exited with status 3" in answer.json["message"]
        if where == "fork":
            assert eventually(lambda: not psutil.pid_exists(child))
        else:
            assert psutil.pid_exists(child)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


DAEMON = """
    import os, subprocess

    #: Ends its shell at once, so that it has no parent.
    def daemon():
        words = ["sh", "-c", "setsid sleep 4323 <&- >&- 2>&- & echo $!"]
        return int(subprocess.run(words, capture_output=True, check=True).stdout)

    helper = daemon()

    def daemons():
        started = daemon()
        direct = subprocess.Popen(["sleep", "4323"], start_new_session=True).pid
        assert subprocess.run(["sh", "-c", "exit 3"]).returncode == 3
        return f"{started} {direct} {helper}"
"""


LEAVES = """
    import threading, time
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path

    POOL = ThreadPoolExecutor(1)

    def go_on(folder, name):
        while not (folder / "answered").exists():
            time.sleep(0.01)
        (folder / name).touch()

    def handle(req):
        if req == "daemons":
            return daemons()
        threading.Thread(target=go_on, args=(Path(req), "thread")).start()
        POOL.submit(go_on, Path(req), "executor")
        return "ok"
"""


@pytest.fixture(scope="module", params=["main", "fork", "pool"])
def leaving(request: Any, shared_start: Any, shared_image: Any) -> tuple[str, Any]:
    """Where a handler runs that leaves daemons and threads, and its server."""
    image = shared_image(
        {"one": DAEMON + LEAVES},
        [[0]] if request.param == "main" else [[], [0]],
        mechanism="pool" if request.param == "pool" else "fork",
        entry={"output": 0},
    )
    return request.param, shared_start(image)


def test_daemons_of_handlers_end_with_a_forked_process_alone(leaving, eventually):
    """In a process that stays they are what they are in an ordinary function."""
    where, server = leaving
    of_first, of_second = (server.request(body="daemons").text.split() for _ in range(2))
    left = {int(pid) for pid in (*of_first, *of_second)}
    helper = int(of_first[2])
    try:
        ends = left - {helper} if where == "fork" else set()
        assert eventually(lambda: not any(psutil.pid_exists(pid) for pid in ends))
        assert all(psutil.pid_exists(pid) for pid in left - ends)
    finally:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_what_a_handler_has_begun_in_a_thread_is_done_after_its_answer(
    leaving: tuple[str, Any], eventually: Any, tmp_path: Path
) -> None:
    assert leaving[1].request(body=str(tmp_path)).text == "ok"
    (tmp_path / "answered").touch()
    assert eventually(lambda: all((tmp_path / name).exists() for name in ("thread", "executor")))


def test_a_thread_that_never_ends_keeps_no_forked_process(start, wrap_image, eventually):
    handler = """
        import threading
        def handle(req):
            threading.Thread(target=threading.Event().wait, name="waits").start()
            return "ok"
    """
    server = start(wrap_image({"one": handler}, [[], [0]], entry={"output": 0}, timeout_s=0.5))
    idle = len(server.family())
    assert eventually(lambda: server.request().text == "ok")
    told = "ended waits, still running 0.5 s after the answer of its request"
    assert eventually(lambda: told in server.log.read_text())
    assert eventually(lambda: len(server.family()) == idle)


def test_a_process_whose_parent_ended_before_it_ran_ends_at_once() -> None:
    """The kernel sends no signal then: a reaper of a killed fork server ran for ever."""
    code = "from wrap.workers.fork_server import die_with_parent; die_with_parent(1, 9); print(1)"
    known = {"PYTHONPATH": str(TEMPLATES / WRAP)}
    ran = subprocess.run([sys.executable, "-c", code], env=known, capture_output=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, b"", b"")
