"""A replica that will never answer again is replaced, and its calls are answered; no other is."""

from __future__ import annotations

import psutil
import pytest

from chiron.gateway.embedded import EmbeddedGateway

#: How long a start may take here.
READY_S = 22
#: Does as it is told by the path, and says its pid.
SERVER = """
    import __main__, os, signal, socket, threading, time

    def handle(request):
        if request.path == "/stop":
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(1)  # until it has reached every thread
        if request.path == "/close":
            __main__.server.socket.shutdown(socket.SHUT_RDWR)
            __main__.server.socket.close()
        if request.path == "/wait":
            time.sleep(float(request.body))
        return str(os.getpid())
"""
#: Serves one request at a time, so that the check of its health waits as well.
ONE_AT_A_TIME = """
    import os, threading, time
    from http.server import BaseHTTPRequestHandler

    turn = threading.Lock()
    parse = BaseHTTPRequestHandler.parse_request

    def in_turn(self):
        with turn:
            return parse(self)

    BaseHTTPRequestHandler.parse_request = in_turn

    def handle(request):
        with turn:
            end = time.monotonic() + float(request.body or 0)
            while request.path == "/compute" and time.monotonic() < end:
                pass
            if request.path == "/wait":
                time.sleep(float(request.body))
            return str(os.getpid())
"""


@pytest.fixture(scope="module")
def gateway(store):
    """A gateway where silence is soon too long."""
    with EmbeddedGateway(images=store.root, ready_timeout_s=READY_S) as running:
        yield running


def test_a_stopped_function_is_replaced_and_its_calls_are_answered(
    deploy, in_background, wait_until
):
    function = deploy(SERVER)
    pid = function.post().text
    answers = [in_background(function.post, path="/stop")]
    wait_until(lambda: psutil.Process(int(pid)).status() == psutil.STATUS_STOPPED)
    answers.append(in_background(function.post))
    for answer in answers:
        said = answer.result(60)
        assert said.status_code == 502
        assert function.name in said.text
        assert "it is stopped" in said.text
    assert function.post().text != pid
    assert "it is stopped; next start" in function.logs()


@pytest.mark.slow
def test_a_function_that_listens_no_more_is_replaced(deploy, wait_until, in_background):
    function = deploy(SERVER)
    pid = function.post().text
    assert function.post(path="/close").text == pid
    # One call has the connection that there is, the other one needs another.
    calls = [in_background(function.post, "1", "/wait") for _ in range(2)]
    assert sorted(call.result(60).status_code for call in calls) == [200, 502]
    wait_until(lambda: function.post().text not in ("", pid) and function.post().ok)
    assert "nothing listens at its port any more" in function.logs()


def test_a_call_of_a_stopped_function_ends_at_its_time_limit(deploy, wait_until):
    function = deploy(SERVER, envVars={"exec_timeout": "1s"})
    server = psutil.Process(int(function.post().text))
    server.suspend()
    wait_until(lambda: server.status() == psutil.STATUS_STOPPED)
    answer = function.post()
    assert answer.status_code == 504
    assert f"function {function.name}: no answer within 1 s" in answer.text


@pytest.mark.slow
def test_a_busy_function_is_left_alone(deploy, in_background):
    function = deploy(ONE_AT_A_TIME)
    pid = function.post().text
    answers = [in_background(function.post, "7", "/wait"), in_background(function.post)]
    assert [answer.result(60).text for answer in answers] == [pid, pid]


@pytest.mark.slow
def test_a_function_that_is_silent_beyond_its_time_limit_is_replaced(deploy, wait_until):
    function = deploy(ONE_AT_A_TIME, envVars={"exec_timeout": "2s"})
    pid = function.post().text
    assert function.post("600", "/wait").status_code == 504
    wait_until(lambda: function.post().text not in (pid, "") and function.post().ok)
    assert "neither answered /_/health nor computed" in function.logs()


@pytest.mark.slow
def test_a_function_that_begins_anew_is_left_alone_for_as_long_as_a_start_may_take(
    deploy, wait_until
):
    function = deploy(
        f"""
        import os, sys, time

        if "BEGUN" in os.environ:
            time.sleep({READY_S - 2})

        def handle(request):
            if request.path == "/anew":
                os.set_inheritable(int(os.environ["LISTEN_FD"]), True)
                os.execve(sys.executable, sys.orig_argv, os.environ | {{"BEGUN": "1"}})
            return f"{{os.getpid()}} {{os.environ.get('BEGUN')}}"
        """,
        envVars={"exec_timeout": "2s"},
    )
    pid = function.post().text.split()[0]
    assert function.post(path="/anew").status_code == 502
    wait_until(lambda: function.post().ok)
    assert function.post().text == f"{pid} 1"


@pytest.mark.slow
def test_a_function_that_computes_beyond_its_time_limit_is_left_alone(deploy, wait_until):
    function = deploy(ONE_AT_A_TIME, envVars={"exec_timeout": "2s"})
    pid = function.post().text
    assert function.post("16", "/compute").status_code == 504
    wait_until(lambda: function.post().text == pid)
