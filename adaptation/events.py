"""The events of a watcher, one a line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

# fmt: off
Kind = Literal[
    "watching", "window", "gone", "repaired", "adapting", "step", "planned", "unchanged", "checked",
    "outage", "switched", "draining", "removed", "rolled-back", "scaled", "kept",
    "unpredicted", "failed", "verdict",
]
# fmt: on


@dataclass(frozen=True)
class Event:
    """An event: its kind, a line for people, and the figures in it."""

    kind: Kind
    message: str
    figures: dict[str, Any] = field(default_factory=dict)

    def as_json(self, at: str) -> str:
        """Return the event as a line of JSON; `at` is its time."""
        told = {"at": at, "event": self.kind, "message": self.message}
        return json.dumps(told | self.figures)


Tell = Callable[[Event], None]
