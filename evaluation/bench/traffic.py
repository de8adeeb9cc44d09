"""Bytes that requests move through the gateway, as the embedded one counts them, and by Redis."""

from __future__ import annotations

import re
import socket
from collections.abc import Collection
from urllib.parse import urlsplit

import requests
from prometheus_client.parser import text_string_to_metric_families

from generator.stores import StorePlace

_BYTES = "gateway_function_bytes_total"
_TIMEOUT_S = 10.0
#: What Redis says that it has got and given, protocol and all.
_MOVED = re.compile(rb"total_net_(?:input|output)_bytes:(\d+)\r\n")


def gateway_bytes(url: str, names: Collection[str]) -> float | None:
    """Bytes of requests and answers of the functions `names` so far, behind the gateway at `url`.

    None where it does not count them, as OpenFaaS's own.
    """
    try:
        answer = requests.get(f"{url}/metrics", timeout=_TIMEOUT_S)
        answer.raise_for_status()
        families = list(text_string_to_metric_families(answer.text))
    except (requests.RequestException, ValueError):
        return None
    found = [s for family in families for s in family.samples if s.name == _BYTES]
    if not found:
        return None
    return sum(s.value for s in found if s.labels["function_name"].rpartition(".")[0] in names)


def store_bytes(store: StorePlace) -> float | None:
    """Bytes that a Redis has got and given so far; None for another store, or none."""
    parts = urlsplit(store.url)
    if parts.scheme != "redis" or not parts.hostname:
        return None
    login = f"AUTH {store.password}\r\n" if store.password else ""
    address = parts.hostname, parts.port or 6379
    with socket.create_connection(address, _TIMEOUT_S) as server, server.makefile("rb") as said:
        server.sendall(f"{login}INFO stats\r\nQUIT\r\n".encode())
        return float(sum(map(int, _MOVED.findall(said.read()))))
