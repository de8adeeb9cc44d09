"""As faasd, the gateway removes what its watchdog lets go in time, and else fails as faasd does."""

from __future__ import annotations

import pytest
import requests

from tests.imitated import ImitatedGateway

TIMEOUT_S = 60


@pytest.fixture(scope="module")
def gateway(store):
    with ImitatedGateway("faasd", 2.0, images=store.root) as running:
        yield running


@pytest.mark.parametrize(("ends_with", "answered"), [("1", 202), ("0", 500)])
def test_a_function_that_fails_at_its_end_wakes_a_watchdog_that_sleeps_too_long(
    deploy, wait_until, ends_with, answered
):
    variables = {"healthcheck_interval": "600s", "END_STATUS": ends_with}
    function = deploy(envVars=variables)
    wait_until(lambda: function.post("x").text == "x")
    answer = requests.delete(
        f"{function.gateway}/system/functions",
        json={"functionName": function.name},
        timeout=TIMEOUT_S,
    )
    assert answer.status_code == answered
