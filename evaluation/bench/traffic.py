"""Reads traffic and memory: bytes through the embedded gateway and Redis, and bytes of objects.

The objects are in the wraps and in Redis.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Collection
from urllib.parse import urlsplit

import requests
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from chiron.generator.stores import StorePlace
from chiron.openfaas.client import direct_if_here

_BYTES = "gateway_function_bytes_total"
_TIMEOUT_S = 10.0
#: Redis's counters of bytes received and sent, with the protocol's own bytes.
_MOVED = re.compile(rb"total_net_(?:input|output)_bytes:(\d+)\r\n")
_TAKEN = re.compile(rb"used_memory:(\d+)\r\n")
_HELD_BYTES = "chiron_held_bytes"


def gateway_bytes(url: str, names: Collection[str]) -> float | None:
    """Return the total bytes of requests and answers of the functions `names`.

    None if the gateway at `url` does not count bytes, as OpenFaaS's gateway does not.
    """
    found = _samples(f"{url}/metrics", _BYTES)
    if not found:
        return None
    return sum(s.value for s in found if s.labels["function_name"].rpartition(".")[0] in names)


def held_bytes(url: str, names: Collection[str]) -> float | None:
    """Return the bytes of objects in the wraps `names` that tasks wait for; None if unreported."""
    found = [_samples(f"{url}/function/{name}/metrics", _HELD_BYTES) for name in names]
    return sum(each[0].value for each in found) if all(found) else None


def _samples(url: str, name: str) -> list[Sample]:
    """Return the samples of the metric `name` at `url`; none if the page is missing or invalid."""
    try:
        answer = requests.get(url, timeout=_TIMEOUT_S, proxies=direct_if_here(url))
        answer.raise_for_status()
        families = list(text_string_to_metric_families(answer.text))
    except (requests.RequestException, ValueError):
        return []
    return [s for family in families for s in family.samples if s.name == name]


def store_bytes(store: StorePlace) -> float | None:
    """Return the bytes that a Redis has received and sent so far; None if `store` is no Redis."""
    return _told(store, _MOVED)


def stored_bytes(store: StorePlace) -> float | None:
    """Return the bytes of a Redis's memory now; None if `store` is no Redis."""
    return _told(store, _TAKEN)


def _told(store: StorePlace, what: re.Pattern[bytes]) -> float | None:
    """Return the sum of the numbers that `what` matches in INFO; None if `store` is no Redis."""
    parts = urlsplit(store.url)
    if parts.scheme != "redis" or not parts.hostname:
        return None
    login = f"AUTH {store.password}\r\n" if store.password else ""
    address = parts.hostname, parts.port or 6379
    with socket.create_connection(address, _TIMEOUT_S) as server, server.makefile("rb") as said:
        server.sendall(f"{login}INFO\r\nQUIT\r\n".encode())
        return float(sum(map(int, what.findall(said.read()))))
