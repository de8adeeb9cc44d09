"""Bytes that requests move through the gateway, as the embedded one counts them."""

from __future__ import annotations

from collections.abc import Collection

import requests
from prometheus_client.parser import text_string_to_metric_families

_BYTES = "gateway_function_bytes_total"
_TIMEOUT_S = 10.0


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
