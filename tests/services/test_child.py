"""Work ends by its limits, on demand, or with the server, and with it whatever it has started."""

from __future__ import annotations

import contextlib
import operator
import os
import subprocess
import sys
import threading
from multiprocessing import forkserver

import psutil
import pytest

from chiron.services import fork_server
from chiron.services.child import Failed, Limits, call, run
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import parse_workflow

AMPLE = Limits(time_s=60.0, cpu_s=60)
#: Starts a process that leaves its group and its parent, and says which it is.
DAEMON = """
import os, subprocess
code = "import subprocess as s; print(s.Popen(['sleep', '600'], stdout=2).pid)"
out = subprocess.run(["python3", "-c", code], stdout=subprocess.PIPE, start_new_session=True).stdout
os.mkdir(os.path.join({folder!r}, out.decode().strip()))
"""


def never():
    return None


def compute(work, limits=AMPLE, stop=never, tell=print):
    return run(work, limits, tell, stop)


@pytest.fixture
def failure():
    """What the error of work is that fails."""

    def fail(work, limits=AMPLE, stop=never):
        with pytest.raises(Failed) as failed:
            compute(work, limits, stop)
        return failed.value.error

    return fail


@pytest.fixture
def daemon(tmp_path, wait_until):
    """The code that starts a daemon, and the process once it runs."""

    def started():
        (found,) = wait_until(lambda: list(tmp_path.iterdir()))
        return psutil.Process(int(found.name))

    return DAEMON.format(folder=str(tmp_path)), started


def gone(process):
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_work_is_done_in_another_process():
    assert compute(call(os.getpid)) != os.getpid()


@pytest.mark.parametrize(
    ("code", "limits", "expected"),
    [
        ("while True: pass", Limits(time_s=60.0, cpu_s=1), "cpu-limit"),
        ("import time; time.sleep(600)", Limits(time_s=0.5, cpu_s=60), "time-limit"),
        ("bytes(2**33)", Limits(time_s=60.0, cpu_s=60, memory_mib=2048), "memory-limit"),
    ],
)
def test_what_exceeds_a_limit_ends(failure, code, limits, expected):
    error = failure(call(exec, code), limits)

    assert (error.code, error.status) == (expected, 422)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("1 / 0", "internal"),
        ("import os; os.kill(os.getpid(), 9)", "died"),
        ("import sys; sys.exit()", "died"),
    ],
)
def test_work_with_a_fault_is_a_fault_of_the_service(failure, code, expected):
    error = failure(call(exec, code))

    assert (error.code, error.status) == (expected, 500)


def test_work_that_has_to_stop_cleans_up_before(failure, tmp_path):
    code = f"""
import os, time
try:
    os.mkdir({str(tmp_path / "began")!r})
    time.sleep(600)
finally:
    os.mkdir({str(tmp_path / "cleaned")!r})
"""
    reason = ChironError("enough", "enough of it")

    with pytest.raises(Failed) as failed:
        compute(call(exec, code), stop=lambda: reason if (tmp_path / "began").exists() else None)

    assert failed.value.error is reason
    assert (tmp_path / "cleaned").exists()


@pytest.mark.parametrize("end", ["", "os.kill(os.getpid(), 9)", "os._exit(3)"])
def test_what_work_has_started_ends_with_it(daemon, wait_until, end):
    code, started = daemon
    with pytest.raises(Failed) if end else contextlib.nullcontext():
        compute(call(exec, code + end))

    with contextlib.suppress(psutil.NoSuchProcess):  # it has ended, or is about to
        process = started()
        wait_until(lambda: gone(process))


def test_what_work_has_started_ends_with_the_server(daemon, wait_until):
    code, started = daemon
    program = f"""
from chiron.services.child import call, run
from chiron.services.child import Limits
if __name__ == "__main__":
    work = call(exec, {code + "import time; time.sleep(600)"!r})
    run(work, Limits(600.0, 600), print, lambda: None)
"""
    with subprocess.Popen([sys.executable, "-c", program]) as server:
        try:
            process = started()
            below = psutil.Process(server.pid).children(recursive=True)
        finally:
            server.kill()
    wait_until(lambda: gone(process) and all(map(gone, below)))


def test_a_fork_server_that_is_killed_as_it_is_asked_is_replaced():
    fork_server.prepare()
    server = psutil.Process(forkserver._forkserver._forkserver_pid)
    server.suspend()  # so that it is killed between the question and the answer
    threading.Timer(0.2, server.kill).start()
    assert compute(call(operator.add, 1, 2)) == 3


def test_where_no_process_can_be_had_the_work_has_died(failure, monkeypatch):
    def refuse(_):
        raise ConnectionRefusedError

    monkeypatch.setattr(fork_server.context.Process, "start", refuse)
    error = failure(call(operator.add, 1, 2))
    assert (error.code, error.status) == ("died", 500)


def test_progress_is_told():
    lines = []

    # A work that does nothing but tell: it is called with what takes the lines.
    compute(operator.methodcaller("__call__", "a step"), tell=lines.append)

    assert lines == ["a step"]


def test_many_at_once_do_not_mix_their_results():
    results = {}

    def one(number):
        results[number] = compute(call(pow, number, 1))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == {number: number for number in range(8)}


def test_work_leaves_no_descriptors_and_no_threads():
    compute(call(os.getpid))
    descriptors, threads = psutil.Process().num_fds(), threading.active_count()
    for _ in range(5):
        compute(call(os.getpid))

    assert psutil.Process().num_fds() <= descriptors
    assert threading.active_count() <= threads


def test_faults_that_are_joined_arrive_as_several(failure):
    task = {"Type": "Task", "Resource": "arn:aws:states:::sns:publish"}
    states = {"A": task | {"Next": "B"}, "B": task | {"End": True}}

    error = failure(call(parse_workflow, {"StartAt": "A", "States": states}))

    told = [(part.code, part.path, part.status) for part in error.parts]
    assert told == [("unsupported-resource", f"States.{name}.Resource", 400) for name in states]
    assert error.message.startswith("2 faults: ")


#: Of a process that does work: what it has loaded; of the fork server: its threads.
STATE = """[
    "networkx" in __import__("sys").modules,
    __import__("chiron.predictor.compiling").predictor.compiling.kernel.cache_info().currsize,
    __import__("psutil").Process().parents()[1].num_threads(),
]"""


def test_what_planning_needs_is_loaded_before_the_fork_which_no_thread_disturbs():
    assert compute(call(eval, STATE)) == [True, 1, 1]


def test_no_group_is_killed_whose_number_is_free(failure, monkeypatch):
    killed = []
    monkeypatch.setattr(os, "killpg", lambda *told: killed.append(told))
    assert failure(call(exec, "import os; os.kill(os.getpid(), 9)")).code == "died"
    assert killed == []
