"""Network I/O: fetches several texts from the peer, one after the other."""

import hashlib
import json
import os
from http.client import HTTPConnection, HTTPSConnection
from urllib.parse import urlsplit

TIMEOUT_S = 10.0
GATEWAY_URL = "http://gateway.openfaas:8080"  # as functions reach it in a cluster


def peer_url() -> str:
    """Return PEER_URL, else the function slapp-peer behind the gateway."""
    gateway = os.environ.get("gateway_url", GATEWAY_URL).rstrip("/")  # noqa: SIM112 - OpenFaaS's name
    return os.environ.get("PEER_URL") or f"{gateway}/function/slapp-peer"


def fetch_all(keys: list[str], size: int) -> list[bytes]:
    """Return the peer's texts of `size` bytes for `keys`, over one connection.

    Raises:
        RuntimeError: the peer answered with another status than 200.
        OSError: the peer cannot be reached.
    """
    url = urlsplit(peer_url())
    connect = HTTPSConnection if url.scheme == "https" else HTTPConnection
    connection = connect(url.netloc, timeout=TIMEOUT_S)
    texts = []
    try:
        for key in keys:
            body = json.dumps({"key": key, "bytes": size}).encode()
            connection.request("POST", url.path or "/", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            texts.append(response.read())
            if response.status != 200:
                raise RuntimeError(f"peer at {peer_url()} answered {response.status}")
    finally:
        connection.close()
    return texts


def handle(req: str) -> str:
    """Fetch `sizes.network-io.requests` texts of `.bytes` bytes; the input decides which texts."""
    request = json.loads(req)
    # In stage 2 the input is the list of stage 1's outputs, which contain the sizes.
    sizes = (request[0] if isinstance(request, list) else request).get("sizes", {})
    size = sizes.get("network-io", {})
    seed = hashlib.sha256(req.encode()).hexdigest()
    keys = [f"{seed}/{number}" for number in range(size.get("requests", 1))]
    texts = fetch_all(keys, size.get("bytes", 16384))
    return json.dumps(
        {
            "function": "network-io",
            "received": sum(map(len, texts)),
            "digest": hashlib.sha256(b"".join(texts)).hexdigest(),
            "sizes": sizes,
        }
    )
