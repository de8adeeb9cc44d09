"""What ends when something else ends: processes, loops, servers, the gateway."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psutil
import pytest

BAD = """
    import os, time

    def handle(req):
        if req == "sleeps":
            print("sleeping", flush=True)
            time.sleep(60)
        if req == "leaves a process":
            if os.fork() == 0:
                time.sleep(60)
        return req
"""
GOOD = "def handle(req):\n    return req.upper()\n"
TIMEOUT_S = 30.0
HANDLERS = {"good": GOOD, "bad": BAD}
ENTRY: dict[str, Any] = {"output": [0, 1]}


@dataclass
class Deployment:
    """An entry wrap, the servers behind it, and where the bad function runs."""

    entry: Any
    servers: list[Any]
    wrap: str

    def counts(self) -> list[tuple[int, int, int]]:
        return [(len(s.family()), s.descriptors(), s.threads()) for s in self.servers]

    def has_at_most(self, before: list[tuple[int, int, int]]) -> bool:
        """Whether no process is left or lost, and no descriptor or thread is left."""
        return all(
            now[0] == was[0] and now[1] <= was[1] and now[2] <= was[2]
            for now, was in zip(self.counts(), before, strict=True)
        )

    def is_right(self) -> bool:
        answer = self.entry.request(body="ok")
        return (answer.status, answer.text) == (200, '["OK","ok"]')


Deploy = Callable[[str], Deployment]


@pytest.fixture
def deploy(start: Any, wrap_image: Any, gateway: Any, eventually: Any) -> Deploy:
    """Deploys the workflow good || bad with bad in some place."""

    def deploy(place: str) -> Deployment:
        fields = {"timeout_s": TIMEOUT_S, "name": "test-wrap1"}
        mechanism = "pool" if place == "pool" else "fork"
        if place != "remote":
            processes = [[0, 1]] if place == "main" else [[0], [1]]
            image = wrap_image(HANDLERS, processes, mechanism=mechanism, entry=ENTRY, **fields)
            servers = [start(image)]
        else:
            entry = ENTRY | {"remotes": {"test-wrap2": {1: "bad"}}}
            image = wrap_image({"good": GOOD}, [[0]], entry=entry, **fields)
            fields["name"] = "test-wrap2"
            remote = wrap_image({"bad": BAD}, [[1]], tasks={1: "bad"}, **fields)
            servers = [start(image, gateway_url=gateway.url), start(remote)]
            gateway.ports["test-wrap2"] = servers[1].port
        deployment = Deployment(servers[0], servers, fields["name"])
        assert all(deployment.is_right() for _ in range(5))
        processes = 2 if place == "pool" else 1  # the fork server, a worker
        assert eventually(lambda: len(servers[0].family()) == processes)
        return deployment

    return deploy


def test_a_forked_process_takes_what_it_started_with_it(deploy: Deploy, eventually: Any) -> None:
    deployment = deploy("fork")
    before = deployment.counts()
    assert deployment.entry.request(body="leaves a process").status == 200
    assert eventually(lambda: deployment.has_at_most(before))


def test_the_death_of_the_fork_server_loses_only_what_it_held(
    deploy: Deploy, in_background: Any, eventually: Any
) -> None:
    deployment = deploy("pool")
    family = deployment.entry.family()
    fork_server, workers = family[0], family[1:]
    fork_server.kill()
    assert eventually(lambda: fork_server.status() == psutil.STATUS_ZOMBIE)
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert not alive
    assert all(deployment.is_right() for _ in range(5))
    held = in_background(deployment.entry.request, body="sleeps")
    assert eventually(lambda: "sleeping" in deployment.entry.log.read_text())
    deployment.entry.fork_server().kill()
    error = held.result(60).json
    assert (error["code"], error["function"]) == ("process-died", "bad")
    assert all(deployment.is_right() for _ in range(5))


def test_sigterm_leaves_no_process(deploy: Deploy) -> None:
    deployment = deploy("pool")
    family = deployment.entry.family()
    assert family
    assert deployment.entry.terminate() == 0
    _, alive = psutil.wait_procs(family, timeout=60)
    assert not alive


def test_kill_9_of_the_server_leaves_no_process(
    deploy: Deploy, in_background: Any, eventually: Any
) -> None:
    deployment = deploy("pool")
    request = in_background(deployment.entry.request, body="sleeps")
    assert eventually(lambda: "sleeping" in deployment.entry.log.read_text())
    family = deployment.entry.family()
    deployment.entry.process.kill()
    assert request.exception(60) is not None
    _, alive = psutil.wait_procs(family, timeout=60)
    assert not alive


#: What would end the process it is called in -> the call that the answer names.
ENDINGS = {
    "posix_exit(3)": "os._exit(3)",
    "os_exit(3)": "os._exit(3)",
    "os._exit(status=3)": "os._exit(None)",
    "os.abort()": "os.abort(None)",
    "posix.abort()": "os.abort(None)",
    "os.execl('/bin/true', 'true')": "os.execv('/bin/true')",
    "os.execvpe('true', ['true'], {})": "os.execve(",
    "os.kill(os.getpid(), signal.SIGKILL)": "os.kill(",
    "own_kill(os.getpid(), signal.SIGTERM)": "os.kill(",
    "os.kill(os.getpid(), signal.SIGSTOP)": "os.kill(",
    "os.kill(0, signal.SIGKILL)": "os.kill(0)",
    "os.killpg(os.getpgrp(), signal.SIGUSR1)": "os.killpg(",
    "signal.raise_signal(signal.SIGINT)": "signal.raise_signal(",
    "signal.pthread_kill(threading.get_ident(), signal.SIGABRT)": "signal.pthread_kill(",
    "signal.alarm(1)": "signal.alarm(1)",
    "signal.setitimer(signal.ITIMER_PROF, 0.1)": "signal.setitimer(",
    "_thread.interrupt_main()": "_thread.interrupt_main(None)",
}
#: What only looks like it.
HARMLESS = (
    "os.kill(os.getpid(), 0)",
    "os.kill(os.getpid(), signal.SIGCHLD)",
    "signal.raise_signal(signal.SIGUSR2)",  # the module has a handler
    "os.kill(os.getpid(), signal.SIGXCPU)",  # C code has one
    "signal.alarm(0)",
)
ENDER = """
    import _thread, faulthandler, os, posix, signal, threading
    from os import _exit as os_exit
    from os import kill as own_kill
    from posix import _exit as posix_exit

    signal.signal(signal.SIGUSR2, lambda *_: None)
    faulthandler.register(signal.SIGXCPU)

    def handle(req):
        eval(req)
        return "still here"
"""


def test_no_call_of_a_handler_ends_the_wrap(
    start: Any, wrap_image: Any, in_background: Any, eventually: Any
) -> None:
    sleeper = (
        "import time\nfrom pathlib import Path\ndef handle(req):\n    Path('began').touch()\n"
        "    while not Path('go').exists(): time.sleep(0.01)\n    return 'slept'\n"
    )
    handlers = {"ender": ENDER, "other": sleeper}
    image = wrap_image(handlers, buckets=[([], [0]), ([0], [1])], entry={"output": 0})
    server = start(image)
    other = in_background(server.request, body="1 + 1")
    assert eventually((image / "began").exists)
    for ending, called in ENDINGS.items():
        answer = server.request(body=ending)
        error = answer.json
        assert (answer.status, error["code"], error["function"]) == (500, "exited", "ender"), ending
        assert f"called {called}" in error["message"], ending
    (image / "go").touch()
    assert (other.result(60).status, other.result(60).text) == (200, "still here")
    for call in HARMLESS:
        assert server.request(body=call).text == "still here"
    child = "__import__('subprocess').Popen(['sleep', '60'])"
    ended = f"(lambda p: (p.kill(), print(p.wait())))({child})"
    assert server.request(body=ended).text == "still here"
    assert "-9" in server.log.read_text()
    assert server.process.poll() is None


def test_a_process_that_dies_is_told_of_where_no_descriptor_is_left(
    start: Any, wrap_image: Any
) -> None:
    leaks = """
        import os, resource

        def handle(req):
            resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
            try:
                while True:
                    os.dup(0)
            except OSError:
                os.mkdir("../leaked")
            return req
    """
    dies = """
        import os, time

        def handle(req):
            while not os.path.exists("../leaked"):
                time.sleep(0.01)
            os._exit(3)
    """
    image = wrap_image({"leaks": leaks, "dies": dies}, [[0], [1]], entry=ENTRY)
    answer = start(image).request()
    assert (answer.status, answer.json["code"]) == (500, "process-died")
    assert answer.json["function"] == "dies"


def test_connections_that_the_gateway_has_closed_are_opened_anew_and_a_lost_wrap_is_named(
    deploy: Deploy, gateway: Any, eventually: Any
) -> None:
    deployment = deploy("remote")
    gateway.hangs_up = True
    for _ in range(5):
        before = gateway.closed
        assert deployment.is_right()
        assert eventually(lambda before=before: gateway.closed > before)
    gateway.ports.clear()
    answer = deployment.entry.request(body="ok")
    assert (answer.status, answer.json["code"]) == (500, "remote")
    assert (answer.json["wrap"], answer.json["function"]) == ("test-wrap2", "bad")
    assert "404: no such function" in answer.json["message"]


def test_a_gateway_that_is_not_there_is_named(start: Any, wrap_image: Any) -> None:
    entry = {"output": 1, "remotes": {"test-wrap2": {1: "far"}}}
    server = start(wrap_image({}, entry=entry), gateway_url="http://127.0.0.1:9")
    answer = server.request()
    assert (answer.status, answer.json["code"]) == (500, "remote")
    assert "http://127.0.0.1:9" in answer.json["message"]
