"""All that a function starts ends with it and counts for it, however it hides."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import psutil
import pytest
import requests

from chiron.gateway import processes
from chiron.gateway.embedded import EmbeddedGateway

TIMEOUT_S = 60
#: Forks a daemon as System V daemons do, which says its pid; it takes memory, or is stubborn.
DAEMON = """
    import ctypes, os, signal, subprocess, sys, time

    def daemon(size, stubborn):
        reader, writer = os.pipe()
        if os.fork():
            os.close(writer)
            return os.read(reader, 20).decode()
        os.setsid()
        for _ in range(2):
            if os.fork():
                os._exit(0)
            os.setsid()
        if stubborn:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.closerange(0, writer)
        os.closerange(writer + 1, 1000)
        os.write(writer, str(os.getpid()).encode())
        time.sleep(0.5)  # until that is answered
        hog = bytearray(size)
        while True:
            time.sleep(600)

    def handle(request):
        if request.path == "/exit":
            os._exit(3)
        if request.path == "/alone":
            ctypes.CDLL(None).prctl(1, 0)  # what ends it with its parent
            os.kill(os.getppid(), 9)
            time.sleep(600)
        return f"{os.getpid()} {daemon(int(request.body or 0), request.path == '/stubborn')}"
"""


@pytest.fixture
def daemon(alive):
    """Have a function start a daemon; returns the pids of both."""

    def start(function, size: int = 0) -> list[int]:
        pids = [int(pid) for pid in function.post(str(size)).text.split()]
        assert len(pids) == 2
        return pids

    return start


def remove(function) -> None:
    url, body = f"{function.gateway}/system/functions", {"functionName": function.name}
    assert requests.delete(url, json=body, timeout=TIMEOUT_S).status_code == 202


@pytest.mark.parametrize(
    "end",
    [
        remove,
        lambda function: function.scale(0),
        lambda function: function.post(path="/exit"),
        lambda function: function.post(path="/alone"),
    ],
    ids=["removed", "scaled to zero", "ended", "killed its init process"],
)
def test_a_daemon_ends_with_its_function(end, deploy, daemon, alive, wait_until):
    function, other = deploy(DAEMON), deploy(DAEMON)
    pids, others = daemon(function), daemon(other)
    assert all(alive(pid) for pid in pids)
    end(function)
    wait_until(lambda: not any(alive(pid) for pid in pids))
    assert all(alive(pid) for pid in others)


#: Forks a process that is for ever replaced by its child, in a session of its own.
HOPPER = """
    import os

    def handle(request):
        if not os.fork():
            while True:
                os.setsid() if os.getpid() != os.getsid(0) else None
                if os.fork():
                    os._exit(0)
        return str(os.getpid())
"""


def environment_has(name: str) -> bool:
    """Whether a process has the function's environment."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("OPENFAAS_NAME") == name:
                return True
    return False


def test_a_process_whose_pid_is_never_old_ends_with_its_function(deploy, alive, wait_until):
    function = deploy(HOPPER)
    pid = int(function.post().text)
    remove(function)
    wait_until(lambda: not alive(pid))
    # One look may miss it.
    wait_until(lambda: not any(environment_has(function.name) for _ in range(20)))


def test_a_daemon_counts_for_the_memory_limit(deploy, daemon, alive, wait_until):
    function = deploy(DAEMON, limits={"memory": "150Mi"})
    small = daemon(function)
    pids = daemon(function, 200 << 20)
    wait_until(lambda: "above its memory limit" in function.logs())
    wait_until(lambda: not any(alive(pid) for pid in [*small, *pids]))
    assert function.post().status_code == 200


def test_a_daemon_counts_for_what_the_function_uses(deploy, daemon, wait_until):
    function = deploy(DAEMON)
    daemon(function, 100 << 20)
    wait_until(
        lambda: function.describe(usage=True)["usage"]["totalMemoryBytes"] > 100 << 20,
    )


def test_no_zombie_stays(deploy, daemon, alive, wait_until):
    function = deploy(DAEMON)
    server, pid = daemon(function)
    above = psutil.Process(pid).parent()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not psutil.pid_exists(pid))
    assert above in psutil.Process(server).parents()


@contextlib.contextmanager
def gateway_with_daemon(store, make_image):
    """A gateway of its own, and the pids of a function and its daemon."""
    make_image("daemon", DAEMON)
    with EmbeddedGateway(images=store.root) as gateway:
        body = {"service": "daemon", "image": "daemon"}
        requests.post(f"{gateway.url}/system/functions", json=body, timeout=TIMEOUT_S)
        answer = requests.post(f"{gateway.url}/function/daemon/stubborn", "0", timeout=TIMEOUT_S)
        yield gateway, [int(pid) for pid in answer.text.split()]


def scratch_of(pids: list[int]) -> Path:
    """The gateway's temporary folder, told from a function's home in it."""
    return Path(psutil.Process(pids[0]).environ()["HOME"]).parents[2]


@pytest.mark.parametrize("killed", [("gateway",), ("supervisor",), ("gateway", "supervisor")])
def test_a_daemon_ends_with_its_gateway(killed, store, make_image, alive, wait_until):
    with gateway_with_daemon(store, make_image) as (gateway, pids):
        [supervisor] = psutil.Process(gateway.pid).children()
        scratch = scratch_of(pids)
        of_name = {"gateway": psutil.Process(gateway.pid), "supervisor": supervisor}
        for name in killed:
            of_name[name].suspend()
        for name in killed:
            of_name[name].kill()
        wait_until(lambda: not any(alive(pid) for pid in [*pids, gateway.pid]))
        if len(killed) == 1:
            wait_until(lambda: not scratch.exists())


#: A supervisor that is killed when it has killed its children, and has to kill theirs yet.
KILLED = """
import os
from chiron.gateway import processes

processes.kill_descendants = lambda: (processes.kill_children(), os._exit(0))
"""


def test_a_daemon_ends_though_its_supervisor_is_killed_as_it_ends_all(
    store, make_image, alive, wait_until, tmp_path, monkeypatch
):
    (tmp_path / "sitecustomize.py").write_text(KILLED)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    with gateway_with_daemon(store, make_image) as (gateway, pids):
        os.kill(gateway.pid, signal.SIGKILL)
        wait_until(lambda: not any(alive(pid) for pid in pids))


def test_a_stopped_supervisor_outlives_no_gateway(store, make_image, alive, wait_until):
    with gateway_with_daemon(store, make_image) as (gateway, pids):
        [supervisor] = psutil.Process(gateway.pid).children()
        scratch = scratch_of(pids)
        supervisor.suspend()
        os.kill(gateway.pid, signal.SIGKILL)
        wait_until(lambda: not any(alive(pid) for pid in [*pids, supervisor.pid]))
        wait_until(lambda: not scratch.exists())


def test_a_gateway_ends_though_its_supervisor_is_stopped(store, make_image, alive, wait_until):
    with gateway_with_daemon(store, make_image) as (gateway, _):
        children = psutil.Process(gateway.pid).children(recursive=True)
        psutil.Process(gateway.pid).children()[0].suspend()
    assert not [process for process in children if alive(process.pid)]


#: The pid of the tests' process, which none of the other processes there has.
ME = 1000


@pytest.fixture
def machine(monkeypatch):
    """A machine's processes, as parents by pid, and the pids that are read of it."""
    parents, read = {1: 0, 2: 0, 50: 1, 60: 50, ME: 50}, []

    def entry(pid):
        read.append(pid)
        return processes.Entry(parents[pid], "S", "1", 0.0, 0) if pid in parents else None

    monkeypatch.setattr(os, "getpid", lambda: ME)
    monkeypatch.setattr(processes, "_listed", lambda: set(parents))
    monkeypatch.setattr(processes, "_entry", entry)
    return parents, read


def test_what_is_elsewhere_is_read_once(machine):
    parents, read = machine
    sampler = processes.DescendantSampler()
    parents |= {7: ME, 8: 7}
    sampler.snapshot()
    read.clear()
    parents |= {9: 8, 70: 60}
    assert processes.descendants([ME], sampler.snapshot()) == {ME, 7, 8, 9}
    assert sorted(read) == sorted([ME, 7, 8, 9, 70])
    del parents[60], parents[7]
    parents |= {8: ME}
    sampler.snapshot()
    parents[60] = 8  # the pid is used again
    assert processes.descendants([ME], sampler.snapshot()) == {ME, 8, 9, 60}


def test_an_orphan_is_found_though_its_parent_ended_while_it_was_read(machine):
    parents, _ = machine
    sampler = processes.DescendantSampler()
    sampler.snapshot()
    parents[8] = 7  # which is not listed any more
    sampler.snapshot()
    parents[8] = ME
    assert processes.descendants([ME], sampler.snapshot()) == {ME, 8}
