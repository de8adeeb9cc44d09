"""Bytes that requests move through the gateway, as the embedded one counts them, and by Redis.

And those that objects take meanwhile: in the wraps, and in Redis.
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

_BYTES = "gateway_function_bytes_total"
_TIMEOUT_S = 10.0
#: What Redis says that it has got and given, protocol and all.
_MOVED = re.compile(rb"total_net_(?:input|output)_bytes:(\d+)\r\n")
_TAKEN = re.compile(rb"used_memory:(\d+)\r\n")
_HELD = "chiron_held_bytes"


def gateway_bytes(url: str, names: Collection[str]) -> float | None:
    """Bytes of requests and answers of the functions `names` so far, behind the gateway at `url`.

    None where it does not count them, as OpenFaaS's own.
    """
    found = _samples(f"{url}/metrics", _BYTES)
    if not found:
        return None
    return sum(s.value for s in found if s.labels["function_name"].rpartition(".")[0] in names)


def held_bytes(url: str, names: Collection[str]) -> float | None:
    """Bytes of objects for which tasks wait now in the wraps `names`; None where one tells none."""
    found = [_samples(f"{url}/function/{name}/metrics", _HELD) for name in names]
    return sum(each[0].value for each in found) if all(found) else None


def _samples(url: str, name: str) -> list[Sample]:
    """The metric `name` of the page at `url`; nothing where there is none."""
    try:
        answer = requests.get(url, timeout=_TIMEOUT_S)
        answer.raise_for_status()
        families = list(text_string_to_metric_families(answer.text))
    except (requests.RequestException, ValueError):
        return []
    return [s for family in families for s in family.samples if s.name == name]


def store_bytes(store: StorePlace) -> float | None:
    """Bytes that a Redis has got and given so far; None for another store, or none."""
    return _told(store, _MOVED)


def stored_bytes(store: StorePlace) -> float | None:
    """Bytes that a Redis takes in memory now; None for another store, or none."""
    return _told(store, _TAKEN)


def _told(store: StorePlace, what: re.Pattern[bytes]) -> float | None:
    """The sum of what a Redis tells by INFO of `what`."""
    parts = urlsplit(store.url)
    if parts.scheme != "redis" or not parts.hostname:
        return None
    login = f"AUTH {store.password}\r\n" if store.password else ""
    address = parts.hostname, parts.port or 6379
    with socket.create_connection(address, _TIMEOUT_S) as server, server.makefile("rb") as said:
        server.sendall(f"{login}INFO\r\nQUIT\r\n".encode())
        return float(sum(map(int, what.findall(said.read()))))
