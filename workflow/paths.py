"""The paths of objects from one wrap to another, and the choice of path in a plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

#: The path of objects from one wrap to another: over a connection between the two, through the
#: gateway, or by a store.
Path = Literal["direct", "gateway", "store"]
#: The choice in a plan: ``auto`` is direct if possible, otherwise through the gateway; ``gateway``
#: is always through the gateway; ``store`` is by a store.
PathKind = Literal["auto", "gateway", "store"]
DEFAULT_PATH: PathKind = "auto"


class PathChoice(NamedTuple):
    """The consequences of a plan's choice of path."""

    #: The allowed paths of objects, which use the first possible path.
    paths: tuple[Path, ...]
    #: Whether wraps connect to each other for their calls.
    connects: bool = True
    #: Whether streams are sent to other wraps while they are written.
    streams: bool = False
    #: Whether the wraps need a store.
    by_store: bool = False


PATHS: Mapping[PathKind, PathChoice] = {
    "auto": PathChoice(("direct", "gateway"), streams=True),
    "gateway": PathChoice(("gateway",), connects=False),
    "store": PathChoice(("store",), by_store=True),
}
#: The path as a phrase in messages.
IN_WORDS: Mapping[Path, str] = {
    "direct": "directly",
    "gateway": "through the gateway",
    "store": "by a store",
}
