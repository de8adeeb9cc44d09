"""Stores keep what they are given, say by name what is wrong, and never wait for ever."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from wrap.core.errors import TaskError
from wrap.net.object_store import Store, store_of

BOUND_S = 180.0


def soon(seconds: float = BOUND_S) -> float:
    return time.monotonic() + seconds


@pytest.fixture
def opened(store: Any) -> Store:
    """A running store, as a wrap has it."""
    return store_of(store.place.url, store.place.password)


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield listener.getsockname()[1]


def test_what_was_put_last_is_what_is_got(store: Any, opened: Store) -> None:
    for size in (0, 1, 65_535, 65_536, 5_000_000):
        content = os.urandom(size)
        opened.put("1/2", memoryview(content), soon())
        assert opened.get("1/2", soon()) == content
        assert store.names() == ["1/2"]
    opened.delete(["1/2"], soon())
    assert store.names() == []


def test_many_are_deleted_at_once_and_what_is_not_there_is_no_error(
    store: Any, opened: Store
) -> None:
    names = [f"1/{number}" for number in range(12)]
    for name in names:
        opened.put(name, b"x", soon())
    opened.delete([*names, *(f"2/{number}" for number in range(2000))], soon())
    assert store.names() == []


def test_what_a_store_has_lost_is_an_error_that_names_it(store: Any, opened: Store) -> None:
    opened.put("1/lost", b"x", soon())
    store.lose_all()
    with pytest.raises(TaskError, match=r"1/lost is gone|NoSuchKey") as raised:
        opened.get("1/lost", soon())
    assert (raised.value.code, raised.value.status) == ("store", 500)


def test_threads_share_it(opened: Store) -> None:
    def exchange(number: int) -> bool:
        content = b"%d" % number * 1000
        opened.put(f"1/{number}", content, soon())
        return opened.get(f"1/{number}", soon()) == content

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(exchange, range(40)))
    opened.delete([f"1/{number}" for number in range(40)], soon())


@pytest.mark.parametrize(
    "store",
    [
        pytest.param("redis", marks=pytest.mark.redis),
        pytest.param("minio", marks=pytest.mark.minio),
    ],
    indirect=True,
)
def test_connections_are_kept(store: Any, opened: Store) -> None:
    place = urlsplit(store.place.url)

    def connections() -> set[int]:
        found = psutil.Process().net_connections("tcp4")
        there = (c for c in found if c.raddr and tuple(c.raddr) == (place.hostname, place.port))
        return {c.laddr.port for c in there}

    opened.put("1/kept", b"x", soon())
    before = connections()
    for _ in range(20):
        assert opened.get("1/kept", soon()) == b"x"
    assert connections() <= before  # those of other tests may end
    opened.delete(["1/kept"], soon())


@pytest.mark.redis
@pytest.mark.parametrize("store", ["redis"], indirect=True)
def test_what_redis_keeps_expires_a_while_after_the_deadline(
    store: Any, opened: Store, monkeypatch: pytest.MonkeyPatch, eventually: Any
) -> None:
    monkeypatch.setattr("wrap.net.object_store.redis.KEPT_S", 0.1)
    opened.put("1/soon", b"x", soon(0.2))
    assert eventually(lambda: "1/soon" not in store.names())


@pytest.mark.redis
@pytest.mark.parametrize("store", ["redis"], indirect=True)
def test_connections_that_the_server_has_ended_are_made_anew(store: Any, opened: Store) -> None:
    import redis

    opened.put("1/ended", b"x", soon())
    with redis.Redis.from_url(store.place.url, password=store.place.password) as own:
        own.client_kill_filter(_type="normal", skipme=True)
    assert opened.get("1/ended", soon()) == b"x"
    opened.delete(["1/ended"], soon())


@pytest.mark.parametrize(
    ("store", "said"),
    [
        pytest.param("redis", "WRONGPASS", marks=pytest.mark.redis),
        pytest.param("minio", "SignatureDoesNotMatch", marks=pytest.mark.minio),
    ],
    indirect=["store"],
)
def test_a_store_that_refuses_the_credentials_says_so_without_them(store: Any, said: str) -> None:
    refused = store_of(store.place.url, "another-password")
    for attempt in (lambda: refused.put("1/2", b"x", soon()), lambda: refused.get("1/2", soon())):
        with pytest.raises(TaskError, match=said) as raised:
            attempt()
        assert raised.value.code == "store"
        user = str(urlsplit(store.place.url).username)
        assert not any(word in raised.value.message for word in ("another-password", user + "@"))


@pytest.mark.parametrize("url", ["redis://127.0.0.1:{}", "s3://key@127.0.0.1:{}/bucket"])
def test_a_store_that_is_down_is_an_error_at_once(url: str, free_port: int) -> None:
    down = store_of(url.format(free_port), "password")
    for attempt in (
        lambda: down.put("1/2", b"x", soon()),
        lambda: down.get("1/2", soon()),
        lambda: down.delete(["1/2"], soon()),
    ):
        with pytest.raises(TaskError, match="refused") as raised:
            attempt()
        assert raised.value.code == "store"


@pytest.mark.parametrize("url", ["redis://127.0.0.1:{}", "s3://key@127.0.0.1:{}/bucket"])
def test_a_store_that_is_silent_is_given_up_at_the_deadline(url: str, silent: int) -> None:
    unanswered = store_of(url.format(silent), "password")
    with pytest.raises(TaskError, match="did not answer in time") as raised:
        unanswered.put("1/2", b"x", soon(0.2))
    assert (raised.value.code, raised.value.status) == ("store", 504)


def test_a_redis_that_answers_a_byte_at_times_is_given_up_at_the_deadline() -> None:
    def drip(listener: socket.socket) -> None:
        channel, _ = listener.accept()
        with channel, contextlib.suppress(OSError):
            channel.sendall(b"$1000\r\n")
            while True:
                channel.sendall(b"x")
                time.sleep(0.05)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,), daemon=True)
        thread.start()
        dripping = store_of(f"redis://127.0.0.1:{listener.getsockname()[1]}", "")
        with pytest.raises(TaskError, match="did not answer in time"):
            dripping.get("1/2", soon(0.3))
        thread.join()


def test_what_breaks_off_in_the_middle_is_tried_once_more_and_then_an_error() -> None:
    met = []

    def break_off(listener: socket.socket) -> None:
        while True:
            try:
                channel, _ = listener.accept()
            except OSError:
                return
            met.append(channel.recv(1 << 16))
            channel.sendall(b"$1000\r\nonly the begin")
            channel.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=break_off, args=(listener,), daemon=True)
        thread.start()
        broken = store_of(f"redis://127.0.0.1:{listener.getsockname()[1]}", "")
        with pytest.raises(TaskError, match="ended within a value"):
            broken.get("1/2", soon())
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
    assert len(met) == 2


@pytest.mark.parametrize(
    "url",
    [
        "redis://",
        "redis://user:password@host",
        "redis://host/name",
        "s3://key@host",
        "s3://key@host/a/b",
        "https://host/bucket",
    ],
)
def test_what_is_no_stores_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError):
        store_of(url, "password")


def test_a_user_without_a_password_is_refused() -> None:
    with pytest.raises(ValueError, match="secret chiron-store"):
        store_of("s3://key@host/bucket", "")


def test_the_store_is_shown_without_its_user() -> None:
    assert store_of("redis://me@host:1/2", "password").place == "redis://host:1/2"
