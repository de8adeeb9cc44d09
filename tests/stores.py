"""Real stores that tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from chiron.evaluation.runtime import servers
from chiron.generator.stores import StorePlace


@dataclass
class RunningStore:
    """A real store that tests share, and what is in it; each test leaves it empty."""

    place: StorePlace
    names: Callable[[], list[str]]
    lose_all: Callable[[], None]


@contextmanager
def _redis() -> Iterator[RunningStore]:
    redis = pytest.importorskip("redis", reason="redis-py is missing: pip install redis==5.2.1")
    with servers.redis() as place, redis.Redis.from_url(place.url, password=place.password) as own:
        yield RunningStore(place, lambda: sorted(map(bytes.decode, own.keys())), own.flushall)


@contextmanager
def _s3(place: StorePlace) -> Iterator[RunningStore]:
    from minio import Minio  # takes a quarter of a second

    url = urlsplit(place.url)
    bucket = url.path.strip("/")
    own = Minio(
        endpoint=url.netloc.partition("@")[2],
        access_key=url.username,
        secret_key=place.password,
        secure=False,
    )
    if not own.bucket_exists(bucket):
        own.make_bucket(bucket)

    def names() -> list[str]:
        return sorted(str(e.object_name) for e in own.list_objects(bucket, recursive=True))

    def lose_all() -> None:
        for name in names():
            own.remove_object(bucket, name)

    yield RunningStore(place, names, lose_all)


@contextmanager
def _minio() -> Iterator[RunningStore]:
    with servers.minio() as place, _s3(place) as running:
        yield running


@contextmanager
def _moto() -> Iterator[RunningStore]:
    """The S3 of a library for tests, which takes any password."""
    from moto.server import ThreadedMotoServer  # takes half a second

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        with _s3(StorePlace(f"s3://key@{host}:{port}/objects", "password")) as running:
            yield running
    finally:
        server.stop()


#: How each kind of store is run.
STORES = {"redis": _redis, "minio": _minio, "moto": _moto}
