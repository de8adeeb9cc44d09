"""A function's life: deployed, ready, invoked, logged, scaled, removed."""

from __future__ import annotations

import os

import requests

TIMEOUT_S = 60
PID = """
    import os

    def handle(request):
        return str(os.getpid())
"""


def test_replicas_take_requests_in_turn(deploy, wait_until):
    function = deploy(PID)
    function.scale(3)
    wait_until(lambda: function.describe().get("availableReplicas") == 3)
    pids = [function.post().text for _ in range(6)]
    assert len(set(pids)) == 3
    assert pids[:3] == pids[3:]


def test_a_function_scaled_to_zero_has_no_process_until_it_is_called(deploy, wait_until, alive):
    function = deploy(PID)
    pid = int(function.post().text)
    function.scale(0)
    wait_until(lambda: not alive(pid))
    assert "replicas" not in function.describe()
    assert "availableReplicas" not in function.describe()
    assert function.post().status_code == 200


def test_a_removed_function_is_unknown_at_once_and_its_processes_end(deploy, wait_until, alive):
    function = deploy("""
        import os, subprocess

        def handle(request):
            child = subprocess.Popen(["sleep", "600"])
            return f"{os.getpid()} {child.pid}"
    """)
    pids = [int(pid) for pid in function.post().text.split()]
    body = {"functionName": function.name, "namespace": "openfaas-fn"}
    url = f"{function.gateway}/system/functions"
    assert requests.delete(url, json=body, timeout=TIMEOUT_S).status_code == 202
    assert function.post().status_code == 404
    assert requests.delete(url, json=body, timeout=TIMEOUT_S).status_code == 404
    wait_until(lambda: not any(alive(pid) for pid in pids))


def test_a_removed_function_lets_a_running_request_end(deploy, wait_until, in_background):
    function = deploy("""
        import time, threading

        def handle(request):
            print("entered")
            time.sleep(0.7)
            return "done"
    """)
    function.post(path="/warm")
    answers = in_background(lambda: function.post())
    wait_until(lambda: function.logs().count("entered") == 2)
    requests.delete(
        f"{function.gateway}/system/functions",
        json={"functionName": function.name},
        timeout=TIMEOUT_S,
    )
    assert answers.result(TIMEOUT_S).text == "done"


def test_a_name_can_be_deployed_again_right_after_its_removal(deploy):
    function = deploy(PID)
    first = function.post().text
    url = f"{function.gateway}/system/functions"
    requests.delete(url, json={"functionName": function.name}, timeout=TIMEOUT_S)
    body = {"service": function.name, "image": function.name}
    assert requests.post(url, json=body, timeout=TIMEOUT_S).status_code == 202
    assert function.post().text not in ("", first)


def test_environment_and_signal_handlers_are_nothing_of_the_gateway_s(deploy):
    function = deploy(
        """
        import json, os, signal

        def handle(request):
            usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
            handlers = [usual, signal.getsignal(signal.SIGHUP) == signal.SIG_DFL]
            return json.dumps(dict(os.environ, cwd=os.getcwd(), handlers=handlers))
        """,
        envVars={"colour": "red"},
        limits={"memory": "100Mi"},
        labels={"com.openfaas.scale.min": "2"},
    )
    seen = function.post().json()
    expected = {
        "PATH", "HOME", "TMPDIR", "LANG", "PYTHONUNBUFFERED", "OPENFAAS_NAME",
        "OPENFAAS_NAMESPACE", "gateway_url", "secrets_dir", "LISTEN_FD", "colour",
        "handler_style", "cwd", "MEMORY_LIMIT_BYTES", "handlers",
    }  # fmt: skip
    assert set(seen) - {"LC_CTYPE"} == expected
    assert (seen["colour"], seen["MEMORY_LIMIT_BYTES"]) == ("red", str(100 << 20))
    assert seen["handlers"] == [True, True]
    assert function.describe()["replicas"] == 2
    assert seen["OPENFAAS_NAME"] == function.name
    assert seen["gateway_url"] == function.gateway
    assert seen["HOME"] != os.environ.get("HOME")


def test_a_function_with_a_cpu_limit_runs_on_that_many_cores(deploy):
    code = """
        import os

        def handle(request):
            return str(len(os.sched_getaffinity(0)))
    """
    assert deploy(code, limits={"cpu": "500m"}).post().text == "1"
    assert deploy(code).post().text == str(len(os.sched_getaffinity(0)))


def test_a_function_with_a_long_name_has_short_paths_for_sockets(deploy):
    """As `multiprocessing` binds them; the name of the function has 42 characters."""
    function = deploy("""
        import os, socket

        def handle(request):
            folder = os.path.join(os.environ["TMPDIR"], "pymp-12345678")
            os.mkdir(folder)
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(os.path.join(folder, "listener-12345678"))
            return "bound"
    """)
    assert function.post().text == "bound"
