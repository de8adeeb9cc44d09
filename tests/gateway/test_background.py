"""What keeps replicas running goes on after an error that nobody expected."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import requests

#: A gateway in which each of two things fails once: a start, and the look at a replica's liveness.
FAULTY = """
import sys
from chiron.gateway import replica, revision
from chiron.gateway.__main__ import main

def once(call):
    failed = []

    def failing(*arguments):
        if not failed:
            failed.append(True)
            raise RuntimeError("injected")
        return call(*arguments)

    return failing

revision.LineReader = once(revision.LineReader)
replica.await_death = once(replica.await_death)
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def gateway(store):
    """A gateway with faults."""
    arguments = ["--with-stdin", "--port=0", f"--images={store.root}"]
    with subprocess.Popen(
        [sys.executable, "-c", FAULTY, *arguments],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        process.stdin.write(b"[null, null]\n")
        process.stdin.flush()
        yield SimpleNamespace(url=json.loads(process.stdout.readline())["url"], pid=process.pid)
        process.stdin.close()
        process.wait(60)


def test_a_replica_whose_keeper_fails_is_started_again_and_calls_are_answered(deploy, wait_until):
    function = deploy("def handle(request):\n    return 'well'\n")
    wait_until(lambda: function.logs().count("the gateway failed: RuntimeError: injected") == 2)
    answers = []

    def answered():
        answers.append(function.post())
        return answers[-1].status_code == requests.codes.ok

    wait_until(answered)
    assert answers[-1].text == "well"
