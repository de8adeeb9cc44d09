"""The format of requests and of buckets' objects in Redis, and their numbers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence

from wrap.core.buckets.triggers import Item, Number
from wrap.values.value import Object

#: A bucket and an object in it.
Held = tuple[str, Item[Object]]

#: How many low bits of a request's number identify its replica.
_REPLICA_BITS = 16


def numbers_of(replica: int) -> Iterator[int]:
    """Yield numbers for requests, unique among replicas and increasing with time."""
    last = 0
    while True:
        last = max(last + 1, time.time_ns() // 1000)
        yield last << _REPLICA_BITS | replica % (1 << _REPLICA_BITS)


def name_of(number: Number) -> bytes:
    """Return the name of a session or an object."""
    return ".".join(map(str, number)).encode()


def keys_of(items: Iterable[Held]) -> list[bytes]:
    """Return a key for each object in each bucket: an object may be in several buckets."""
    return [name_of(item.number) + b" " + bucket.encode() for bucket, item in items]


def number_of(name: bytes) -> Number:
    return tuple(map(int, name.split(b".")))


def record_of(said: Sequence[object], value: Object) -> bytes:
    """Return a record: a line of properties, then the bytes of the object."""
    return json.dumps(said).encode() + b"\n" + value.view()


def item_record(bucket: str, item: Item[Object]) -> bytes:
    said = [item.value.content_type, bucket, item.number, item.name, item.group, item.size]
    return record_of(said, item.value)


def object_of(record: bytes) -> Object:
    said, _, content = record.partition(b"\n")
    return Object(content, json.loads(said)[0])


def item_of(record: bytes) -> Held:
    _, bucket, number, name, group, size = json.loads(record.partition(b"\n")[0])
    return bucket, Item(tuple(number), object_of(record), tuple(number), name, group, size)
