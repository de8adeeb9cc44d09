"""Finds the server process of a function among all others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from chiron.profiler.sandbox import Sandbox, find_sandbox
from chiron.workflow.errors import ChironError
from chiron.workflow.tracing import KEY_VARIABLE

#: Another one in each process, as tests run side by side.
PORT = 20_000 + os.getpid() % 20_000
URL = f"http://127.0.0.1:{PORT}"
_SERVER = """
import os, sys
read, write = os.pipe()
if not os.fork():
    os.close(write)
    os.read(read, 1)  # returns when the server is gone
    os._exit(0)
print("up", flush=True)
for line in sys.stdin:
    block = b"x" * (64 << 20)
    del block
    print("allocated", flush=True)
"""

Serve = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts an index.py, which forks, as the function `name` of the gateway at `url`."""
    (tmp_path / "index.py").write_text(_SERVER)
    with ExitStack() as stack:

        def start(name: str, url: str = URL, key: str = "") -> subprocess.Popen[str]:
            process = subprocess.Popen(
                [sys.executable, "index.py"],
                cwd=tmp_path,
                env={"OPENFAAS_NAME": name, "gateway_url": url, KEY_VARIABLE: key},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            return process

        yield start


def test_the_server_is_found_and_not_what_it_forked(serve: Serve) -> None:
    process = serve("quotes")
    serve("other")
    serve("quotes", f"http://127.0.0.1:{PORT + 1}")
    assert find_sandbox("quotes", f"http://localhost:{PORT}") == Sandbox(process.pid)


def test_programs_beside_the_server_are_told_from_what_it_forked(serve: Serve) -> None:
    assert Sandbox(serve("quotes").pid).beside() == []
    with subprocess.Popen(["sleep", "60"]) as program:
        assert program.pid in Sandbox(os.getpid()).beside()
        program.kill()


def test_a_function_that_is_not_here_is_an_error_with_its_name() -> None:
    with pytest.raises(ChironError, match="nowhere") as caught:
        find_sandbox("nowhere", URL)
    assert (caught.value.code, caught.value.functions) == ("no-process", ("nowhere",))


def test_two_replicas_are_an_error(serve: Serve) -> None:
    serve("quotes")
    serve("quotes")
    with pytest.raises(ChironError, match="2 replicas"):
        find_sandbox("quotes", URL)


def test_two_builds_of_a_function_are_told_apart_by_their_keys(serve: Serve) -> None:
    """As a local launcher runs them with a gateway: once as they are, once under strace."""
    first, second = serve("quotes", key="a"), serve("quotes", key="b")
    assert find_sandbox("quotes", URL, "a") == Sandbox(first.pid)
    assert find_sandbox("quotes", URL, "b") == Sandbox(second.pid)


def test_the_kernel_knows_interpreter_and_peak_memory(serve: Serve) -> None:
    process = serve("quotes")
    sandbox = find_sandbox("quotes", URL)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    assert sandbox.runtime() == version
    sandbox.forget_peak()
    idle = sandbox.resident_mib()
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("allocate\n")
    process.stdin.flush()
    process.stdout.readline()
    assert idle + 50 < sandbox.peak_mib() < idle + 80
