"""Signals while a verb deploys, runs and removes: whenever they come, nothing stays deployed."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chiron.openfaas.client import Gateway
from tests.imitated import ImitatedGateway


@pytest.mark.parametrize(
    ("first", "number", "second"),  # Python hears the lower number first, if both have come
    [
        ("building", signal.SIGHUP, signal.SIGINT),
        pytest.param("building", signal.SIGQUIT, signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("measuring", signal.SIGINT, signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_a_second_signal_while_all_is_removed_leaves_nothing_deployed(
    first, number, second, start, artefacts, environment, wait_until
):
    images = Path(environment["CHIRON_HOME"]) / "images"
    with (
        ImitatedGateway("faasd", 10.0, images=images) as embedded,
        Gateway(embedded.url) as there,
    ):
        running = start(
            "deploy", "small", "--slo=1s", "-g", embedded.url, "--planner=one-to-one",
            "--profile=profile.json", "--platform=platform.json", "--no-check",
        )  # fmt: skip
        running.wait_for(re.compile(f"({first})"))
        if first == "building":
            wait_until(there.functions)
        running.signal(number)
        assert running.end(second) == 128 + number
        assert "further signals are ignored" in running.said
        assert running.said.endswith("error: interrupted\n")
        assert there.functions() == []


_INTERRUPTED_IMPORT = """
import os, signal, sys

class Finder:
    def find_spec(name, *_):
        if name == "chiron.cli.main":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder)
from chiron.cli import start
start()
"""


def test_ctrl_c_while_the_modules_load_is_no_traceback(environment):
    command = [sys.executable, "-c", _INTERRUPTED_IMPORT]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")
