"""Clients that are many, slow, or gone: everybody else is answered, and right."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from crowd import CROWD, ask, crowd, latencies_ms, leavers, lorises, make_room, serving

REQUESTS, AT_ONCE = 20, 32


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    if not make_room():
        pytest.skip(f"a process may not have descriptors for {CROWD} connections: ulimit -Hn")
    with serving(tmp_path_factory.mktemp("crowd")) as url:
        yield url


@pytest.mark.parametrize("others", [lorises, leavers])
def test_beside_slow_and_leaving_clients_every_answer_is_right(url, others):
    with others(url):
        assert len(latencies_ms(url, REQUESTS)) == REQUESTS


def test_a_thousand_connections_each_get_their_own_answer(url):
    with crowd(url) as connections, ThreadPoolExecutor(AT_ONCE) as threads:
        texts = [f"it is {number}".encode() for number in range(len(connections))]

        assert list(threads.map(ask, connections, texts)) == texts
        assert len(latencies_ms(url, REQUESTS)) == REQUESTS
