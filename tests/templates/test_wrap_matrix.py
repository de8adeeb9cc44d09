"""Whatever fault a function has, its request ends as it should, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

BAD = """
    import ctypes, os, signal, sys, threading, time

    def handle(req):
        if req == "raises": raise KeyError("no such share")
        if req == "sys.exit": sys.exit(3)
        if req == "os._exit": os._exit(4)
        if req == "SIGKILL": os.kill(os.getpid(), signal.SIGKILL)
        if req == "SIGSEGV": ctypes.string_at(0)
        if req == "infinite loop":
            while True: pass
        if req == "sleeps": time.sleep(2)
        if req == "10 MB": return "x" * 10_000_000
        if req == "no UTF-8": return b"\\xff\\xfe"
        if req == "no JSON": return "{not json"
        if req == "prints 10 MB":
            for _ in range(10_000): print("x" * 999)
        if req == "endless thread":
            threading.Thread(target=threading.Event().wait).start()
        if req == "writes to stdout": os.write(1, bytes(range(256)) * 100)
        if req == "deep recursion": return handle(req)
        if req == "None": return None
        if req == "status": return "no such trade", 404
        if req == "MemoryError": return "x" * (1 << 60)
        return req
"""
GOOD = "def handle(req):\n    return 'good'\n"
HANDLERS = {"good": GOOD, "bad": BAD}
DEADLINE_S = 1.0

#: Fault -> status, code and a part of the message.
FAULTS = {
    "raises": (500, "raised", "KeyError: 'no such share'"),
    "sys.exit": (500, "exited", "sys.exit(3)"),
    "os._exit": (500, "process-died", "exited with status 4"),
    "SIGKILL": (500, "process-died", "was killed by SIGKILL"),
    "SIGSEGV": (500, "process-died", "was killed by SIGSEGV"),
    "infinite loop": (504, "timeout", "bad did not answer in time"),
    "sleeps": (504, "timeout", "bad did not answer in time"),
    "no UTF-8": (500, "not-text", "output 2 of 2 that are joined to a JSON list is not UTF-8"),
    "None": (500, "bad-output", "None"),
    "status": (500, "status", "404: no such trade"),
    "deep recursion": (500, "raised", "RecursionError"),
    "MemoryError": (500, "raised", "MemoryError"),
}
#: What is no fault of the request -> what it answers.
ANSWERS = {
    "10 MB": '"' + "x" * 10_000_000 + '"',
    "no JSON": '"{not json"',
    "prints 10 MB": '"prints 10 MB"',
    "endless thread": '"endless thread"',
    "writes to stdout": '"writes to stdout"',
}
#: What ends a further process, and in the main process its task alone -> a part of the message.
CONTAINED = {"os._exit": "called os._exit(4)", "SIGKILL": "called os.kill("}
#: What ends the main process, and with it the wrap: whoever runs it starts it again.
DEADLY = ("SIGSEGV",)
ALL = (*FAULTS, *ANSWERS)


@dataclass
class Deployment:
    """The workflow good || bad; `bad` is the wrap that has the bad function."""

    mechanism: str
    place: str
    start: Callable[[], list[Any]]
    servers: list[Any]

    @property
    def bad_wrap(self) -> str:
        return "test-wrap2" if self.place == "remote" else "test-wrap1"

    @property
    def bad_process(self) -> str:
        """``main``, ``fork`` or ``pool``."""
        if self.place == "remote":
            return "main" if self.mechanism == "fork" else "pool"
        return "main" if self.place == "main" else self.mechanism

    def ask(self, text: str, deadline_s: float = 20.0) -> Any:
        return self.servers[0].request(body=text, X_Chiron_Timeout=str(deadline_s))

    def is_right(self, number: int) -> bool:
        answer = self.ask(f"n{number}")
        return (answer.status, answer.text) == (200, f'["good","n{number}"]')

    def counts(self) -> list[tuple[int, int, int]]:
        return [(len(s.family()), s.descriptors(), s.threads()) for s in self.servers]


@pytest.fixture
def deploy(start: Any, wrap_image: Any, gateway: Any) -> Callable[[str, str], Deployment]:
    """Deploys the workflow with the bad function in some place."""
    base: dict[str, Any] = {"output": [0, 1]}

    def local(mechanism: str, place: str) -> list[Any]:
        processes = [[1], [0]] if place == "main" else [[0], [1]]
        return [wrap_image(HANDLERS, processes, mechanism=mechanism, entry=base)]

    def remote(mechanism: str) -> list[Any]:
        entry = base | {"remotes": {"test-wrap2": {1: "bad"}}}
        near = wrap_image({"good": GOOD}, [[], [0]], mechanism=mechanism, entry=entry)
        processes = [[1]] if mechanism == "fork" else [[], [1]]
        own = {"tasks": {1: "bad"}, "name": "test-wrap2", "mechanism": mechanism}
        return [near, wrap_image({"bad": BAD}, processes, **own)]

    def deploy(mechanism: str, place: str) -> Deployment:
        images = remote(mechanism) if place == "remote" else local(mechanism, place)
        settings = {"gateway_url": gateway.url, "pool_concurrency": "1"}

        def start_all() -> list[Any]:
            servers = [start(image, **settings) for image in images]
            gateway.ports["test-wrap2"] = servers[-1].port
            return servers

        return Deployment(mechanism, place, start_all, start_all())

    return deploy


def inflict(deployment: Deployment, fault: str) -> None:
    """Have the bad function do `fault`, and see that the request ends as it should."""
    if fault in ANSWERS:
        answer = deployment.ask(fault)
        assert (answer.status, answer.text) == (200, f'["good",{ANSWERS[fault]}]')
        return
    status, code, message = FAULTS[fault]
    if deployment.bad_process == "main" and fault in CONTAINED:
        code, message = "exited", CONTAINED[fault]
    if deployment.bad_process == "main" and fault in DEADLY:
        code, message = "remote", "wrap test-wrap2 cannot be reached"
    deadline_s = DEADLINE_S if code == "timeout" else 20.0
    answer = deployment.ask(fault, deadline_s)
    error = answer.json
    assert (answer.status, error["code"]) == (status, code), error
    assert message in error["message"]
    whose = (None, "test-wrap1") if code == "not-text" else ("bad", deployment.bad_wrap)
    assert (error["function"], error["wrap"]) == whose


def end_the_wrap(deployment: Deployment, fault: str) -> None:
    """As `inflict`, where the fault ends a whole wrap, which is then started again."""
    if deployment.place == "remote":
        inflict(deployment, fault)
    else:
        with pytest.raises(OSError):
            deployment.ask(fault)
    victim = deployment.servers[-1]
    assert victim.process.wait(60) < 0
    if fault == "SIGSEGV":  # nobody can be told but the log
        assert "functions/bad/function/handler.py" in victim.log.read_text(errors="replace")
    for server in deployment.servers[:-1]:
        assert server.terminate() == 0
    deployment.servers = deployment.start()


def go_through(deployment: Deployment, eventually: Any) -> None:
    """Each fault, followed by right answers; what a fault took is given back."""
    most_threads: list[int] = []
    for fault in ALL:
        if deployment.bad_process == "main" and fault in DEADLY:
            end_the_wrap(deployment, fault)
            assert all(deployment.is_right(number) for number in range(2)), fault
            most_threads = []
            continue
        assert deployment.is_right(0)
        before = deployment.counts()
        # More are kept where requests came before the threads of those before were idle again.
        most_threads = most_threads or [threads + 2 for _, _, threads in before]
        inflict(deployment, fault)
        assert all(deployment.is_right(number) for number in range(2)), fault
        if fault == "endless thread" and deployment.bad_process == "main":
            most_threads[-1] += 1  # only the handler that has started it can end it

        def is_back(before: Any = before, most_threads: Any = most_threads) -> bool:
            idle = 1 if deployment.mechanism == "fork" else 2  # the fork server, a worker
            return all(
                now[0] == idle and now[1] <= was[1] and now[2] <= most
                for now, was, most in zip(deployment.counts(), before, most_threads, strict=True)
            )

        assert eventually(is_back), (fault, before, most_threads, deployment.counts())


@pytest.mark.parametrize(
    ("mechanism", "place"),
    [("pool", "further"), ("fork", "main"), pytest.param("fork", "remote", marks=pytest.mark.slow)],
)
def test_a_fault_ends_its_request_as_it_should_and_nothing_else(
    mechanism: str, place: str, deploy: Any, eventually: Any
) -> None:
    go_through(deploy(mechanism, place), eventually)
