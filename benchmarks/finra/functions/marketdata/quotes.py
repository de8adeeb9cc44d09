"""Client of the market data service: one connection, one request a page of symbols."""

import json
import os
from http.client import HTTPConnection, HTTPSConnection
from urllib.parse import urlsplit

PAGE_SYMBOLS = 12
TIMEOUT_S = 10.0
GATEWAY_URL = "http://gateway.openfaas:8080"  # as functions reach it in a cluster


def service_url() -> str:
    """Return QUOTES_URL, else the function finra-quotes behind the gateway."""
    gateway = os.environ.get("gateway_url", GATEWAY_URL).rstrip("/")  # noqa: SIM112 - OpenFaaS's name
    return os.environ.get("QUOTES_URL") or f"{gateway}/function/finra-quotes"


def fetch_quotes(symbols: list[str]) -> dict[str, int]:
    """Return `{symbol: price in cents}`.

    Raises:
        RuntimeError: the service answered with another status than 200.
        OSError: the service cannot be reached.
    """
    url = urlsplit(service_url())
    connect = HTTPSConnection if url.scheme == "https" else HTTPConnection
    connection = connect(url.netloc, timeout=TIMEOUT_S)
    quotes: dict[str, int] = {}
    try:
        for start in range(0, len(symbols), PAGE_SYMBOLS):
            body = json.dumps(symbols[start : start + PAGE_SYMBOLS]).encode()
            connection.request("POST", url.path or "/", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
            if response.status != 200:
                raise RuntimeError(f"market data at {service_url()} answered {response.status}")
            quotes.update(json.loads(answer))
    finally:
        connection.close()
    return quotes
