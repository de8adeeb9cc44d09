"""The paths by which objects get from one wrap to another, and which of them a plan asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

#: How objects get from one wrap to another: over a connection between the two, through the gateway,
#: or by a store.
Path = Literal["direct", "gateway", "store"]
#: What a plan asks for: directly where that is possible, else through the gateway; always through
#: it; or by a store.
PathKind = Literal["auto", "gateway", "store"]
#: What it asks for where nothing is said.
DEFAULT_PATH: PathKind = "auto"


class PathChoice(NamedTuple):
    """What follows from the path that a plan asks for."""

    #: The paths that objects may take; they take the first that is possible.
    paths: tuple[Path, ...]
    #: Whether wraps connect to each other for their calls.
    connects: bool = True
    #: Whether streams go to other wraps while they are written.
    streams: bool = False
    #: Whether the wraps need a store.
    by_store: bool = False


PATHS: Mapping[PathKind, PathChoice] = {
    "auto": PathChoice(("direct", "gateway"), streams=True),
    "gateway": PathChoice(("gateway",), connects=False),
    "store": PathChoice(("store",), by_store=True),
}
#: How a sentence says it.
IN_WORDS: Mapping[Path, str] = {
    "direct": "directly",
    "gateway": "through the gateway",
    "store": "by a store",
}
