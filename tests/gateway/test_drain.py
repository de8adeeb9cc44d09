"""A replica that is replaced has as long to answer as its function's calls may take."""

from __future__ import annotations

import pytest
import requests

TIMEOUT_S = 60
#: A gateway that gives calls less time than they need, unless their function says so.
HASTY = """
import sys
from chiron.gateway import revision
from chiron.gateway.__main__ import main

revision._DRAIN_S = 0.1
sys.exit(main(sys.argv[1:]))
"""
SLOW = """
    import time

    def handle(request):
        print("begun", flush=True)
        time.sleep(2)
        return "well"
"""


@pytest.fixture
def gateway(gateway_of):
    return gateway_of(HASTY)


def test_a_call_ends_before_its_replica(deploy, in_background, wait_until):
    function = deploy(SLOW)
    call = in_background(function.post)
    wait_until(lambda: "begun" in function.logs())
    body = {"service": function.name, "image": function.name}
    url = f"{function.gateway}/system/functions"
    assert requests.put(url, json=body, timeout=TIMEOUT_S).status_code == 202
    assert call.result().text == "well"
