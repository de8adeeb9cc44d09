"""The store of a deployment: for objects between wraps, for durable buckets, and for Maps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from chiron.openfaas.stack import StackFile
from chiron.openfaas.store_function import PASSWORD, SECRET, reads_store
from chiron.workflow.errors import ChironError
from chiron.workflow.paths import PATHS, PathKind
from chiron.workflow.plan import Plan

#: The variable of a wrap with the store's URL.
VARIABLE = "chiron_store"
#: A wrap's requirements for each kind of store.
_REQUIREMENTS = {"redis": (), "rediss": (), "s3": ("minio>=7.2,<8",), "s3s": ("minio>=7.2,<8",)}
_FORMS = "redis://[USER@]HOST[:PORT][/DATABASE] or s3://KEY@HOST[:PORT]/BUCKET (TLS: rediss, s3s)"


class StorePlace(NamedTuple):
    """A store: its URL for wraps, and its password, which is empty if a gateway stores it."""

    url: str = ""
    password: str = ""

    @classmethod
    def read(cls, url: str, variables: Mapping[str, str]) -> StorePlace:
        """Return the store at `url`; empty means none. Raises ``bad-store`` for a faulty URL."""
        if not url:
            return NO_STORE
        try:
            parts = urlsplit(url)
            reachable = bool(parts.hostname) and parts.port != 0
        except ValueError:  # not shown: a password may stand in place of the port
            message = f"the URL of --store is no store: say {_FORMS}"
            raise ChironError("bad-store", message, path="store") from None
        if parts.password is not None:
            message = (
                f"a store's password does not belong into its URL: set {PASSWORD}, or make "
                f"the secret {SECRET} of it"
            )
            raise ChironError("bad-store", message, path="store")
        if parts.query or parts.fragment:  # not shown: it may have a password
            message = f"the URL of --store ends with its path, without ? and #: say {_FORMS}"
            raise ChironError("bad-store", message, path="store")
        in_s3 = parts.scheme.startswith("s3")
        path = parts.path.strip("/")
        fits = path and "/" not in path if in_s3 else not path or path.isdecimal()
        if parts.scheme not in _REQUIREMENTS or not reachable or not fits:
            raise ChironError("bad-store", f"{url!r} is no store: say {_FORMS}", path="store")
        return cls(url, variables.get(PASSWORD, ""))


NO_STORE = StorePlace()


class Needs(NamedTuple):
    """The needs of a plan's wraps for its store; empty if they use none."""

    variables: Mapping[str, str]
    secrets: tuple[str, ...]
    requirements: tuple[str, ...]


def needs_of(plan: Plan, url: str, *, durable: bool = False) -> Needs:
    """Return the needs of the wraps of `plan` for the store at `url`, also of `durable` buckets.

    Raises ``no-store`` if they need a store and `url` is empty or of the wrong kind.
    """
    if durable:
        require_redis(url)
    elif not PATHS[plan.path].by_store or plan.orchestrator == "client" or len(plan.wraps) == 1:
        return Needs({}, (), ())
    else:
        require_store(plan.path, url)
    parts = urlsplit(url)
    secrets = (SECRET,) if parts.username else ()
    return Needs({VARIABLE: url}, secrets, _REQUIREMENTS[parts.scheme])


def require_store(path: PathKind, url: str) -> None:
    """Raise ``no-store`` if `path` sends objects through a store and `url` is empty."""
    if PATHS[path].by_store and not url:
        message = f"with the path store, say which one with --store: {_FORMS}"
        raise ChironError("no-store", message, path="store")


def require_redis(url: str) -> None:
    """Raise ``no-store``, for durable buckets, unless `url` is Redis."""
    if urlsplit(url).scheme not in ("redis", "rediss"):
        message = f"durable buckets are kept in Redis: say which one with --store: {_FORMS}"
        raise ChironError("no-store", message, path="store")


def require_s3(stack: StackFile, url: str) -> None:
    """Raise ``no-store`` if Maps read or write S3 and `url` is not S3."""
    if reads_store(stack) and urlsplit(url).scheme not in ("s3", "s3s"):
        message = (
            "a Map of the workflow reads or writes S3: say where that is with "
            "--store s3://KEY@HOST[:PORT]/BUCKET (TLS: s3s), or name a function in functions.json"
        )
        raise ChironError("no-store", message, path="store")
