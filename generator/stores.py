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

#: The variable by which a wrap knows it.
VARIABLE = "chiron_store"
#: What a wrap needs for each kind of store.
_REQUIREMENTS = {"redis": (), "rediss": (), "s3": ("minio>=7.2,<8",), "s3s": ("minio>=7.2,<8",)}
_FORMS = "redis://[USER@]HOST[:PORT][/DATABASE] or s3://KEY@HOST[:PORT]/BUCKET (TLS: rediss, s3s)"


class StorePlace(NamedTuple):
    """A store: the URL that wraps know it by, and its password, empty where a gateway has it."""

    url: str = ""
    password: str = ""

    @classmethod
    def read(cls, url: str, variables: Mapping[str, str]) -> StorePlace:
        """The store at `url`, empty for none. Raises ``bad-store`` where that is no store's."""
        if not url:
            return NO_STORE
        try:
            parts = urlsplit(url)
            reachable = bool(parts.hostname) and parts.port != 0
        except ValueError:  # it may have the password where a port belongs: it is not repeated
            message = f"the URL of --store is no store: say {_FORMS}"
            raise ChironError("bad-store", message, path="store") from None
        if parts.password is not None:
            message = (
                f"a store's password does not belong into its URL: set {PASSWORD}, or make "
                f"the secret {SECRET} of it"
            )
            raise ChironError("bad-store", message, path="store")
        in_s3 = parts.scheme.startswith("s3")
        path = parts.path.strip("/")
        fits = path and "/" not in path if in_s3 else not path or path.isdecimal()
        if parts.scheme not in _REQUIREMENTS or not reachable or not fits:
            raise ChironError("bad-store", f"{url!r} is no store: say {_FORMS}", path="store")
        return cls(url, variables.get(PASSWORD, ""))


NO_STORE = StorePlace()


class Needs(NamedTuple):
    """What the wraps of a plan need for its store: nothing where they use none."""

    variables: Mapping[str, str]
    secrets: tuple[str, ...]
    requirements: tuple[str, ...]


def needs_of(plan: Plan, url: str, *, durable: bool = False) -> Needs:
    """What the wraps of `plan` need where `url` is the store's; `durable` buckets are kept there.

    Raises ``no-store`` where they need one and `url` is empty, or not what they need.
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
    """Raise ``no-store`` where objects are to go by a store, and none is named."""
    if PATHS[path].by_store and not url:
        message = f"with the path store, say which one with --store: {_FORMS}"
        raise ChironError("no-store", message, path="store")


def require_redis(url: str) -> None:
    """Raise ``no-store`` where buckets are to be durable, and no Redis is named."""
    if urlsplit(url).scheme not in ("redis", "rediss"):
        message = f"durable buckets are kept in Redis: say which one with --store: {_FORMS}"
        raise ChironError("no-store", message, path="store")


def require_s3(stack: StackFile, url: str) -> None:
    """Raise ``no-store`` where Maps read or write S3, and none is named."""
    if reads_store(stack) and urlsplit(url).scheme not in ("s3", "s3s"):
        message = (
            "a Map of the workflow reads or writes S3: say where that is with "
            "--store s3://KEY@HOST[:PORT]/BUCKET (TLS: s3s), or name a function in functions.json"
        )
        raise ChironError("no-store", message, path="store")
