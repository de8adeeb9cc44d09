"""A traced request marks, for a tracer of system calls, where each handler begins and ends."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.strace


@pytest.fixture
def trace(tmp_path: Path, eventually: Any) -> Any:
    """Attaches strace to a process and its children; what it has seen when it is called."""
    if shutil.which("strace") is None:
        pytest.skip("strace is missing: apt-get install strace")
    tracers: list[subprocess.Popen[bytes]] = []

    def attach(pid: int) -> Any:
        log = tmp_path / "strace"
        filters = ["-e", "trace=access,faccessat,getppid"]
        command = ["strace", "-f", *filters, "-o", str(log), "-p", str(pid)]
        tracer = subprocess.Popen(command, stderr=subprocess.PIPE)
        tracers.append(tracer)
        assert tracer.stderr is not None
        if b"attached" not in tracer.stderr.readline():
            pytest.skip("this machine does not permit tracing")
        os.set_blocking(tracer.stderr.fileno(), False)

        def seen() -> str:
            tracer.send_signal(signal.SIGTERM)
            tracer.wait(60)
            return log.read_text()

        return seen

    yield attach
    for tracer in tracers:
        if tracer.poll() is None:
            tracer.kill()
            tracer.wait(60)


def test_begin_and_end_surround_the_handler(start: Any, wrap_image: Any, trace: Any) -> None:
    image = wrap_image(
        {"one": "import os\ndef handle(req):\n    os.getppid()\n    return req\n"},
        [[], [7]],
        tasks={7: "one"},
        entry={"output": 7},
    )
    server = start(image, chiron_trace_key="key")
    seen = trace(server.fork_server().pid)
    server.request(body="1")
    server.request(body="2", X_Chiron_Trace="key")
    calls = re.findall(r"^(\d+) +(\w+)\((?:[^\"\n]*\"([^\"]*)\")?", seen(), re.MULTILINE)
    last = [(call, path) for _, call, path in calls][-3:]
    assert last == [("access", "/chiron/begin/7"), ("getppid", ""), ("access", "/chiron/end/7")]
    assert sum(path == "/chiron/begin/7" for _, _, path in calls) == 1
    thread = {pid for pid, _, _ in calls[-3:]}
    assert len(thread) == 1
