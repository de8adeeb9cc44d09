"""The functions' client of the store: Redis over connections that stay open.

REDIS_URL is `redis://...` or `function:NAME`. The supporting function NAME of the same gateway
starts that Redis on this machine (server.py). Each round trip to it is then delayed by
STORE_DELAY_MS (default 0), to imitate another machine.
"""

import os
import socket
import time
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

FUNCTION = "function:"
TIMEOUT_S = 10.0
PATIENCE_S = 1.0  # until a new replica of the supporting function replaces the old one
LONGEST_ANSWER = 1024
RECENT = 100  # members of an index
DELAY_S = float(os.environ.get("STORE_DELAY_MS", "0")) / 1000
EXPIRE_S = 600  # time to live of every key that the functions write
GATEWAY_URL = "http://gateway.openfaas:8080"  # as functions reach it in a cluster


def meeting_point(name: str) -> str:
    """Return the abstract Unix socket of function `name` of this gateway, for its address."""
    gateway = os.environ.get("gateway_url", GATEWAY_URL)  # noqa: SIM112 - OpenFaaS's name
    return f"\0{name}:{urlsplit(gateway).port or 80}"


def locate(name: str) -> tuple[str, int]:
    """Return host and port of the Redis that function `name` started.

    Raises:
        RuntimeError: the function is missing, or could not start Redis; the message has the fix.
    """
    end = time.monotonic() + PATIENCE_S
    while True:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(TIMEOUT_S)
            try:
                peer.connect(meeting_point(name))
                answer = peer.recv(LONGEST_ANSWER).decode()
            except OSError:
                answer = ""
        if answer.startswith("redis://"):
            url = urlsplit(answer)
            return url.hostname or "", url.port or 0
        if answer:
            raise RuntimeError(answer)
        if time.monotonic() > end:
            raise RuntimeError(
                f"function {name} is not on this machine: deploy it with the workflow, or set "
                "REDIS_URL to redis://HOST:PORT/0"
            )
        time.sleep(0.01)


class _LocatedConnection(redis.Connection):
    """A connection that asks for the address each time it connects: replicas have their own."""

    def _connect(self) -> socket.socket:
        self.host, self.port = locate(os.environ["REDIS_URL"].removeprefix(FUNCTION))
        return super()._connect()

    def send_packed_command(self, command: object, check_health: bool = True) -> None:
        """Send a command or a pipeline, then wait STORE_DELAY_MS as for a network."""
        super().send_packed_command(command, check_health)
        if DELAY_S:
            time.sleep(DELAY_S)


def open_store() -> redis.Redis:
    """Return a client for REDIS_URL; it connects at its first command."""
    options = {
        "decode_responses": True,
        "socket_timeout": TIMEOUT_S,
        "lib_name": None,  # no exchange of names before the first command
        "lib_version": None,
        "retry": Retry(NoBackoff(), 1),
        "retry_on_error": [redis.ConnectionError],
    }
    # The resolver loads a codec at its first use: load it here, not in every forked process.
    socket.getaddrinfo("127.0.0.1", 0)
    url = os.environ.get("REDIS_URL", FUNCTION)
    if url.startswith(FUNCTION):
        pool = redis.ConnectionPool(connection_class=_LocatedConnection, **options)
        return redis.Redis(connection_pool=pool)
    return redis.Redis.from_url(url, **options)


def remember(store: redis.Redis, index: str, member: str, score: float) -> None:
    """Add `member` to the sorted set `index`, and keep the best RECENT, in one round trip."""
    with store.pipeline(transaction=False) as pipeline:
        pipeline.zadd(index, {member: score})
        pipeline.zremrangebyrank(index, 0, -RECENT - 1)
        pipeline.expire(index, EXPIRE_S)
        pipeline.execute()
