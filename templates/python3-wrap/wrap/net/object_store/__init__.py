"""Stores: they hold objects on their way to other wraps, on the path ``store``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from urllib.parse import SplitResult, urlsplit

from wrap.core.errors import TaskError

#: How long a store keeps an object after its execution's deadline, in seconds, unless it is deleted
#: before; only for stores that support expiry.
KEPT_S = 60.0
#: Timeout of a connection, in seconds.
CONNECT_S = 2.0


class Store(Protocol):
    """Stores bytes under names; threads share it.

    Deadlines are in seconds of the monotonic clock. If the connection breaks, a method repeats its
    request once. That is safe, as a name always has the same bytes. Methods raise TaskError,
    ``store``, if the store cannot be reached, does not answer before the deadline, or refuses. The
    message has its `place`, and no credentials.
    """

    @property
    def place(self) -> str:
        """The store's URL without credentials, for people."""

    def put(self, name: str, content: bytes | memoryview, deadline: float) -> None:
        """Store `content`, without copying it here."""

    def get(self, name: str, deadline: float) -> bytes:
        """Return the bytes stored under `name`; TaskError, ``store``, also if they are gone."""

    def delete(self, names: Sequence[str], deadline: float) -> None:
        """Delete the names; a missing name is no error."""


def store_of(url: str, password: str) -> Store:
    """Return the store that `url` names; it is connected to at its first use.

    ``redis://[USER@]HOST[:PORT][/DATABASE]``, ``s3://KEY@HOST[:PORT]/BUCKET``; ``rediss`` and
    ``s3s`` with TLS. `password` is the password of USER, or the secret of KEY.

    Raises ValueError if it names no store, ImportError if the store's library is not installed.
    """
    parts = urlsplit(url)
    if not parts.hostname or parts.password is not None:
        raise ValueError("chiron_store has to name a host, and no password: that is a secret")
    if parts.username and not password:
        raise ValueError("the secret chiron-store has no password of the user in chiron_store")
    if parts.scheme in ("redis", "rediss"):
        from wrap.net.object_store.redis import Redis

        return Redis(parts, password)
    if parts.scheme in ("s3", "s3s"):
        from wrap.net.object_store.s3 import S3  # its library takes 0.1 s and 8 MiB to import

        return S3(parts, password)
    raise ValueError(f"chiron_store begins with {parts.scheme}: it takes redis, rediss, s3 or s3s")


def shown(parts: SplitResult) -> str:
    """Return a store's URL without its user."""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def failed(place: str, what: object) -> TaskError:
    """Return the error of a store, with one line of the cause."""
    line = next(iter(str(what).strip().splitlines()), "") or type(what).__name__
    return TaskError("store", f"the store {place}: {line}")


def late(place: str) -> TaskError:
    return TaskError("store", f"the store {place} did not answer in time", status=504)
