"""Whatever is done to a function under load, no request that was accepted is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

TIMEOUT_S = 60
CLIENTS = 6

ANSWERING = """
    import time

    def handle(request):
        time.sleep(0.02)
        return b"got " + request.body
"""


class Load:
    """Clients that call a function again and again, each over a connection that it keeps."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._over = threading.Event()
        self.wrong: list[str] = []
        self.right = 0

    def run(self, client: int) -> None:
        number = 0
        with requests.Session() as session:
            while not self._over.is_set():
                body = f"{client}-{number}"
                try:
                    answer = session.post(self._url, body, timeout=TIMEOUT_S)
                    said = (answer.status_code, answer.text)
                except requests.RequestException as error:
                    said = (0, repr(error))
                if said == (200, f"got {body}"):
                    self.right += 1
                else:
                    self.wrong.append(f"{body}: {said}")
                number += 1

    def stop(self) -> None:
        self._over.set()


@pytest.fixture
def loaded() -> Iterator[Callable[[str], Load]]:
    """Puts a URL under load until the test is over."""
    with ThreadPoolExecutor(CLIENTS) as pool:
        loads = []

        def start(url: str) -> Load:
            load = Load(url)
            loads.append(load)
            for client in range(CLIENTS):
                pool.submit(load.run, client)
            return load

        try:
            yield start
        finally:
            for load in loads:
                load.stop()


def passed(load: Load, wait_until: Callable[[Callable[[], Any]], None], calls: int = 60) -> None:
    """Wait for so many further calls."""
    until = load.right + calls
    wait_until(lambda: load.right >= until or load.wrong)


def test_deployed_scaled_and_deployed_again_under_load(
    deploy, make_image, gateway, loaded, wait_until
):
    function = deploy(ANSWERING)
    url = f"{gateway.url}/function/{function.name}"
    load = loaded(url)
    passed(load, wait_until)
    body = {"service": function.name, "image": function.name}
    for replicas in (3, 1, 2):
        function.scale(replicas)
        passed(load, wait_until)
        answer = requests.put(f"{gateway.url}/system/functions", json=body, timeout=TIMEOUT_S)
        assert answer.status_code == 202
        passed(load, wait_until)
    wait_until(lambda: function.describe().get("availableReplicas") == 2)
    passed(load, wait_until)
    assert load.wrong == []


def test_deployed_again_and_again_before_the_last_one_is_ready(deploy, gateway, loaded, wait_until):
    function = deploy(ANSWERING)
    load = loaded(f"{gateway.url}/function/{function.name}")
    passed(load, wait_until)
    body = {"service": function.name, "image": function.name}
    for _ in range(6):
        requests.put(f"{gateway.url}/system/functions", json=body, timeout=TIMEOUT_S)
        passed(load, wait_until, calls=10)
    wait_until(lambda: function.describe().get("availableReplicas") == 1)
    passed(load, wait_until)
    assert load.wrong == []


def test_scaled_to_nothing_and_back_under_load(deploy, gateway, loaded, wait_until):
    function = deploy(ANSWERING)
    load = loaded(f"{gateway.url}/function/{function.name}")
    for _ in range(3):
        passed(load, wait_until)
        function.scale(0)
    passed(load, wait_until)
    assert load.wrong == []
