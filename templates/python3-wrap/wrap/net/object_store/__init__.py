"""Stores: where objects are while they are on their way to other wraps, with the path ``store``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from urllib.parse import SplitResult, urlsplit

from wrap.core.errors import TaskError

#: How long a store keeps an object after the deadline of its execution, in seconds, where nothing
#: deletes it before and where it can be told.
KEPT_S = 60.0
#: How long to wait for a connection, in seconds.
CONNECT_S = 2.0


class Store(Protocol):
    """Keeps bytes under names; threads share it.

    Deadlines are in seconds of the monotonic clock. What a method asks for it asks for once more
    where the connection breaks, which does no harm: the same name always has the same bytes.
    They raise TaskError, ``store``, where the store cannot be reached, is silent until the
    deadline, or refuses; the message has its `place`, and no credentials.
    """

    @property
    def place(self) -> str:
        """Which one it is, for people."""

    def put(self, name: str, content: bytes | memoryview, deadline: float) -> None:
        """Keep `content`, which is not copied here."""

    def get(self, name: str, deadline: float) -> bytes:
        """What `put` was given; ``store`` too where the store has it no longer."""

    def delete(self, names: Sequence[str], deadline: float) -> None:
        """Keep these no longer; that one is not there is no error."""


def store_of(url: str, password: str) -> Store:
    """The store that `url` names; it is not connected to before it is used.

    ``redis://[USER@]HOST[:PORT][/DATABASE]``, ``s3://KEY@HOST[:PORT]/BUCKET``; ``rediss`` and
    ``s3s`` with TLS. The password of USER, or of KEY, is `password`.

    Raises ValueError where it names none, ImportError where its library is not installed.
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
        from wrap.net.object_store.s3 import S3  # its library takes 0.1 s and 8 MiB

        return S3(parts, password)
    raise ValueError(f"chiron_store begins with {parts.scheme}: it takes redis, rediss, s3 or s3s")


def shown(parts: SplitResult) -> str:
    """A store's URL without the user in it."""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def failed(place: str, what: object) -> TaskError:
    """The error of a store, with one line of what went wrong."""
    line = next(iter(str(what).strip().splitlines()), "") or type(what).__name__
    return TaskError("store", f"the store {place}: {line}")


def late(place: str) -> TaskError:
    """The error of a store that has said nothing until the deadline."""
    return TaskError("store", f"the store {place} did not answer in time", status=504)
