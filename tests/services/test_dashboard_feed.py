"""What is live is asked for when somebody wants to know, and a slow gateway holds up nobody."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from chiron.services.dashboard.feed import LiveFeed
from chiron.workflow.errors import ChironError
from tests.serving import Answering, served


class Asked:
    """A gateway without functions, which answers once it may, and only to some."""

    def __init__(self):
        self.url, self.may, self.asked, self.status = "", threading.Event(), 0, 200
        self.may.set()


@pytest.fixture
def gateway(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENFAAS_CONFIG", str(tmp_path))
    asked = Asked()

    class Handler(Answering):
        def do_GET(self):
            asked.asked += 1
            asked.may.wait(20)
            self.answer(asked.status, [])

    with served(Handler) as asked.url:
        yield asked
        asked.may.set()


def test_one_look_does_for_all_who_ask_and_nobody_looks_unasked(gateway, monkeypatch):
    monkeypatch.setattr("chiron.services.dashboard.feed.EVERY_S", 600.0)
    feed = LiveFeed(gateway.url)
    assert gateway.asked == 0
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: feed.newest(), range(8)))
    assert [each.workflows for each in found] == [()] * 8
    assert gateway.asked == 1
    monkeypatch.setattr("chiron.services.dashboard.feed.EVERY_S", 0.0)
    time.sleep(0.1)
    assert gateway.asked == 1
    feed.newest()
    assert gateway.asked == 2


def test_a_gateway_that_hangs_holds_nobody_up_and_is_told(gateway, monkeypatch, wait_until):
    monkeypatch.setattr("chiron.services.dashboard.feed.EVERY_S", 0.0)
    monkeypatch.setattr("chiron.services.dashboard.feed._LATE_S", 1.0)
    feed = LiveFeed(gateway.url)
    gateway.may.clear()
    assert feed.newest() is None
    time.sleep(1.0)
    with pytest.raises(ChironError) as refusal:
        feed.newest()
    assert refusal.value.code == "timeout"
    assert gateway.asked == 1
    gateway.may.set()
    wait_until(lambda: feed.newest() is not None)


def test_a_refusal_is_told_until_there_are_other_credentials(gateway, monkeypatch, wait_until):
    monkeypatch.setattr("chiron.services.dashboard.feed.EVERY_S", 0.0)
    feed = LiveFeed(gateway.url)
    gateway.status = 401
    with pytest.raises(ChironError) as refusal:
        feed.newest()
    assert refusal.value.code == "unauthorised"
    gateway.status = 200

    def admitted():
        try:
            return feed.newest()
        except ChironError:
            return None

    assert wait_until(admitted).workflows == ()
