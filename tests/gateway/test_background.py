"""What keeps replicas running goes on after an error that nobody expected."""

from __future__ import annotations

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
def gateway(gateway_of):
    """A gateway with faults."""
    return gateway_of(FAULTY)


def test_a_replica_whose_keeper_fails_is_started_again_and_calls_are_answered(deploy, wait_until):
    function = deploy("def handle(request):\n    return 'well'\n")
    wait_until(lambda: function.logs().count("the gateway failed: RuntimeError: injected") == 2)
    answers = []

    def answered():
        answers.append(function.post())
        return answers[-1].status_code == requests.codes.ok

    wait_until(answered)
    assert answers[-1].text == "well"
