"""As Kubernetes, the gateway removes later than it says, and starts only what has room."""

from __future__ import annotations

import os

import pytest
import requests

from tests.imitated import ImitatedGateway

TIMEOUT_S = 60
CORES = len(os.sched_getaffinity(0))
#: How long a watchdog sleeps after its SIGTERM: longer than a request takes.
SLEEPY = {"envVars": {"healthcheck_interval": "1s"}}


@pytest.fixture(scope="module")
def gateway(store):
    with ImitatedGateway("kubernetes", 2.0, images=store.root) as running:
        yield running


@pytest.fixture
def system(gateway):
    """Send a request to /system/functions."""

    def send(method, function, **fields):
        url = f"{gateway.url}/system/functions"
        body = {"functionName": function.name, "service": function.name, "image": function.name}
        return requests.request(method, url, json=body | fields, timeout=TIMEOUT_S)

    return send


@pytest.fixture
def ready(deploy, wait_until):
    """Deploy a function and wait until it has its replica."""

    def make(**fields):
        function = deploy(**fields)
        wait_until(lambda: function.describe().get("availableReplicas"))
        return function

    return make


def listed(system, function):
    return function.name in [found["name"] for found in system("GET", function).json()]


def test_a_removed_function_is_listed_and_its_name_is_taken_until_its_replicas_have_ended(
    ready, system, wait_until
):
    function = ready(**SLEEPY)
    assert system("DELETE", function).status_code == 202
    assert listed(system, function)
    assert function.describe()["name"] == function.name
    assert function.post().status_code == 503
    assert system("PUT", function).status_code == system("DELETE", function).status_code == 404
    refused = system("POST", function)
    assert refused.status_code == 500
    assert (
        f'object is being deleted: deployments.apps "{function.name}" already exists'
        in refused.text
    )
    wait_until(lambda: not listed(system, function))
    assert system("POST", function).status_code == 202
    wait_until(lambda: function.post("again").text == "again")


def test_a_watchdog_that_sleeps_longer_than_the_grace_is_killed_and_the_function_goes(
    ready, system, wait_until
):
    function = ready(envVars={"healthcheck_interval": "600s"})
    assert system("DELETE", function).status_code == 202
    wait_until(lambda: not listed(system, function))


def test_a_function_whose_request_finds_no_room_is_pending_until_there_is_some(
    ready, deploy, system, wait_until
):
    first = ready(requests={"cpu": f"{CORES * 1000 - 100}m"})
    second = deploy(requests={"cpu": "200m"})
    small = ready(requests={"cpu": "100m"})
    assert small.post("x").text == "x"
    assert second.describe()["replicas"] == 1
    assert "availableReplicas" not in second.describe()
    health = requests.get(f"{second.gateway}/function/{second.name}/_/health", timeout=TIMEOUT_S)
    assert (health.status_code, second.logs()) == (503, "")
    system("DELETE", first)
    wait_until(lambda: second.post("x").text == "x")


def test_a_new_version_without_room_leaves_the_old_one_serving(ready, system):
    function = ready(requests={"cpu": str(CORES)})
    assert system("PUT", function, requests={"cpu": str(CORES)}).status_code == 202
    assert function.post("x").text == "x"
    assert "availableReplicas" not in function.describe()


def test_a_gateway_ends_while_functions_are_pending_and_being_removed(store, make_image):
    make_image("ends")
    with ImitatedGateway("kubernetes", 600.0, images=store.root) as gateway:
        url = f"{gateway.url}/system/functions"
        for name, fields in {"pending": {"requests": {"cpu": "9000"}}, "leaving": {}}.items():
            body = {"service": name, "image": "ends", **fields}
            assert requests.post(url, json=body, timeout=TIMEOUT_S).status_code == 202
        requests.delete(url, json={"functionName": "leaving"}, timeout=TIMEOUT_S)


def test_it_says_that_it_is_kubernetes(gateway):
    provider = requests.get(f"{gateway.url}/system/info", timeout=TIMEOUT_S).json()["provider"]
    assert (provider["orchestration"], provider["removesFirst"]) == ("kubernetes", False)
