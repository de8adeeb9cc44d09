"""A wrap's metrics page: valid, under the usual names, and right about what has happened."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Callable
from typing import Any

import psutil
import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

ECHO = "def handle(req):\n    return req\n"
#: Fails in the way that it is asked for.
FAILS = """
import os, sys, time

def handle(req):
    if req == "raise":
        raise ValueError("no")
    if req == "exit":
        sys.exit(1)
    if req == "die":
        os.kill(os.getpid(), 9)
    if req == "hang":
        time.sleep(20)
    return req
"""
SLO_S = 0.123


def families(server: Any) -> list[Metric]:
    answer = server.request("GET", "/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return list(text_string_to_metric_families(answer.text))


def value(server: Any, name: str, **labels: str) -> float | None:
    """What the one sample of that name with these labels says; None where there is none."""
    samples = (sample for family in families(server) for sample in family.samples)
    found = [s.value for s in samples if s.name == name and s.labels.items() >= labels.items()]
    assert len(found) < 2, f"{name} has several samples with {labels}"
    return found[0] if found else None


@pytest.fixture
def failing(wrap_image: Any, start: Any) -> Any:
    """A wrap whose task `f` fails as it is asked to, in a process beside the server's."""
    image = wrap_image(
        {"f": FAILS}, [[], [0]], entry={"output": 0}, timeouts_s={"f": 1.0}, attempts=2
    )
    return start(image, WRAP_SLO_MS=str(SLO_S * 1000))


def test_the_page_is_what_prometheus_takes_and_tells_what_may_fail_before_it_does(
    failing: Any, eventually: Any
) -> None:
    """It counts requests by method and status."""
    # From nothing to 1, Prometheus sees no growth.
    assert value(failing, "http_requests_total", code="500", method="post") == 0
    assert value(failing, "chiron_request_failures_total", error="timeout") == 0
    assert value(failing, "chiron_function_failures_total", function="f", error="raised") == 0
    which = {"workflow": "test", "wrap": "test-wrap1", "role": "entry"}
    assert value(failing, "chiron_replica_info", **which) == 1
    asked = [("post", "200", 2), ("post", "500", 1), ("put", "405", 1), ("unknown", "405", 2)]
    for body in ("fine", "fine", "raise"):
        failing.request(body=body)
    for method in ("PUT", "BREW", "PROPFIND"):
        failing.request(method)
    failing.request("GET", "/_/health")  # says nothing of the workflow
    for method, code, count in asked:
        labels = {"method": method, "code": code}
        for name in ("http_requests_total", "http_request_duration_seconds_count"):
            assert eventually(lambda n=name, c=count, ls=labels: value(failing, n, **ls) == c)
    assert value(failing, "http_requests_total", method="get") is None
    assert value(failing, "chiron_request_failures_total", error="raised") == 1
    found = families(failing)
    names = [family.name for family in found]
    assert len(set(names)) == len(names)
    for family in found:
        assert family.documentation and family.type != "unknown", family.name
        assert family.samples, family.name
        totals = {sample.name for sample in family.samples} if family.type == "counter" else ()
        assert all(name.endswith("_total") for name in totals)
    series = [(s.name, *sorted(s.labels.items())) for family in found for s in family.samples]
    assert len(set(series)) == len(series)
    if shutil.which("promtool") is None:
        pytest.skip("promtool is missing (apt-get install prometheus)")
    page = failing.request("GET", "/metrics").body
    checked = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True)
    assert (checked.returncode, checked.stderr.decode()) == (0, "")


def test_durations_lie_in_the_buckets_of_what_they_took(wrap_image, start, eventually):
    sleeps = "import time\n\ndef handle(req):\n    time.sleep(float(req))\n    return req\n"
    server = start(wrap_image({"f": sleeps}, entry={"output": 0}), WRAP_SLO_MS=str(SLO_S * 1000))
    for seconds in ("0.06", "0.25"):
        server.request(body=seconds)
    requests, runs = "http_request_duration_seconds", "chiron_function_duration_seconds"
    assert eventually(lambda: value(server, f"{requests}_count", code="200") == 2)
    for name, of in ((requests, {"code": "200"}), (runs, {"function": "f"})):
        assert value(server, f"{name}_bucket", le="0.05", **of) == 0
        assert value(server, f"{name}_bucket", le="+Inf", **of) == 2
        assert value(server, f"{name}_count", **of) == 2
        assert 0.31 <= value(server, f"{name}_sum", **of) < 20
    # How many were below the SLO is known, and not only guessed from the buckets around it.
    assert value(server, f"{requests}_bucket", le=str(SLO_S), code="200") <= 1
    assert value(server, f"{runs}_bucket", le=str(SLO_S)) is None
    assert value(server, "chiron_slo_seconds") == SLO_S


def test_failures_are_counted_by_function_and_error(failing: Any) -> None:
    """What is lost is started once more, and each of both runs has failed."""
    counts = {"raised": 0, "process-died": 0, "timeout": 0}
    for body, error, runs in (
        ("raise", "raised", 1),
        ("die", "process-died", 2),
        ("hang", "timeout", 2),
    ):
        answer = failing.request(body=body)
        assert answer.json["code"] == error
        counts[error] = runs
        for each, count in counts.items():
            labels = {"function": "f", "error": each}
            assert value(failing, "chiron_function_failures_total", **labels) == count
        assert value(failing, "chiron_function_duration_seconds_count", function="f") == 1
        assert value(failing, "chiron_request_failures_total", error=error) == 1


def test_a_request_that_takes_too_long_as_a_whole_has_failed_in_what_ran(wrap_image, start):
    """Failures of the main process are counted too."""
    image = wrap_image({"f": ECHO, "g": FAILS}, [[0], [1]], entry={"output": [0, 1]}, timeout_s=2.0)
    server = start(image)
    assert server.request(body="hang").json["code"] == "timeout"
    late = "chiron_function_failures_total"
    assert [value(server, late, function=f, error="timeout") for f in "fg"] == [0, 1]
    assert value(server, "chiron_function_duration_seconds_count", function="f") == 1
    server = start(wrap_image({"f": FAILS}, entry={"output": 0}, name="other"))
    code = server.request(body="exit").json["code"]
    assert value(server, late, function="f", error=code) == 1


def test_what_a_task_emits_is_no_run_of_its_own_and_the_process_is_described(wrap_image, start):
    """As Prometheus' own clients do."""
    emits = """
        from chiron_io import emit

        def handle(req):
            emit("left", req)
            return req
    """
    image = wrap_image(
        {"f": emits, "g": ECHO},
        [[0, 1], [2]],
        tasks={0: "f", 1: "f", 2: "g"},
        inputs={0: None, 1: None, 2: 1},
        emits={1: (0, "left")},
        entry={"output": [0, 2]},
    )
    server = start(image)
    assert server.request(body="x").status == 200
    for function in ("f", "g"):
        assert value(server, "chiron_function_duration_seconds_count", function=function) == 1
    assert value(server, "chiron_slo_seconds") is None  # none is set
    process = psutil.Process(server.process.pid)
    assert value(server, "process_start_time_seconds") == pytest.approx(
        process.create_time(), abs=1.0
    )
    memory = process.memory_info()
    assert value(server, "process_resident_memory_bytes") == pytest.approx(memory.rss, rel=0.2)
    assert value(server, "process_virtual_memory_bytes") == pytest.approx(memory.vms, rel=0.2)
    times = process.cpu_times()
    assert value(server, "process_cpu_seconds_total") >= times.user + times.system - 0.05
    assert 0 < value(server, "process_open_fds") < value(server, "process_max_fds")


def test_a_client_that_is_gone_is_told_from_one_that_was_answered(
    wrap_image: Any, start: Any, eventually: Callable[..., bool], tmp_path: Any
) -> None:
    gate = tmp_path / "gate"
    waits = f"""
        import pathlib, time

        def handle(req):
            while not pathlib.Path({str(gate)!r}).exists():
                time.sleep(0.01)
            return req
    """
    server = start(wrap_image({"f": waits}, entry={"output": 0}))
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: w\r\nContent-Length: 1\r\n\r\nx")
        assert eventually(lambda: value(server, "chiron_requests_in_hand") == 1)
    held = psutil.Process(server.process.pid).net_connections
    assert eventually(lambda: not any(c.status == "CLOSE_WAIT" for c in held()))
    gate.touch()
    assert eventually(lambda: value(server, "http_requests_total", code="499") == 1)
    assert value(server, "http_requests_total", code="200") == 0


def test_the_wrap_that_runs_a_function_counts_it_and_no_other(wrap_image, start, gateway, tmp_path):
    entry, inputs = {"output": 1, "remotes": {"far": {1: "g"}}}, {0: None, 1: 0}
    others = {"home": {0: "f"}}
    images = {
        "home": wrap_image({"f": ECHO}, name="home", inputs=inputs, entry=entry),
        "far": wrap_image({"g": FAILS}, tasks={1: "g"}, name="far", inputs=inputs, remotes=others),
    }
    (tmp_path / "chiron-direct").write_text("secret")
    servers = {}
    for name in ("far", "home"):
        settings = {"secrets_dir": str(tmp_path), "chiron_trace_key": "key"}
        servers[name] = start(images[name], gateway_url=gateway.url, **settings)
        gateway.ports[name] = servers[name].port
    home, far = servers["home"], servers["far"]
    assert [home.request(body=body).status for body in ("fine", "raise")] == [200, 500]
    runs, failures = "chiron_function_duration_seconds_count", "chiron_function_failures_total"
    assert [value(home, runs, function=name) for name in "fg"] == [2, None]
    assert [value(far, runs, function=name) for name in "fg"] == [None, 2]
    assert value(home, failures, function="f", error="raised") == 0
    assert value(far, failures, function="g", error="raised") == 1
    assert value(home, "chiron_request_failures_total", error="raised") == 1
    roles = [
        value(each, "chiron_replica_info", role=role)
        for each, role in ((home, "entry"), (far, "part"))
    ]
    assert roles == [1, 1]
