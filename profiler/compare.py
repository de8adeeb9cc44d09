"""Compare two profiles of a workflow, at one speed of the machine."""

from __future__ import annotations

from typing import get_args

from pydantic import Field

from chiron.predictor.speed import latency_at
from chiron.workflow.documents import Document
from chiron.workflow.profile import FunctionProfile, PeriodKind, Profile

_FACTS = (
    "files_read", "files_written", "ports", "unshareable", "set_at_import", "patched_at_import",
    "runtime", "requirements", "optional_imports", "sources",
)  # fmt: skip


class Change(Document):
    """One function's change; ``old_ms`` or ``new_ms`` is None if it was not profiled.

    Attributes:
        old_ms, new_ms: latencies, the new one converted to the machine's speed in the old profile.
        kinds_ms: the increase of the time of each kind.
        facts: other fields that differ.
    """

    function: str
    old_ms: float | None = None
    new_ms: float | None = None
    kinds_ms: dict[str, float] = Field(default_factory=dict)
    facts: tuple[str, ...] = ()

    @property
    def ratio(self) -> float | None:
        """The new latency relative to the old."""
        return self.new_ms / self.old_ms if self.old_ms and self.new_ms is not None else None


class Changes(Document):
    """The changes of all functions of both profiles."""

    changes: tuple[Change, ...]


def compare(old: Profile, new: Profile) -> Changes:
    """Return the differences of `new` from `old` by function, functions of `old` first."""
    names = dict.fromkeys([*old.functions, *new.functions])
    return Changes(
        changes=tuple(
            _change(name, old.functions.get(name), new.functions.get(name)) for name in names
        )
    )


def _change(name: str, old: FunctionProfile | None, new: FunctionProfile | None) -> Change:
    if old is None or new is None:
        return Change(
            function=name,
            old_ms=old.latency_ms if old else None,
            new_ms=new.latency_ms if new else None,
        )
    kinds = {kind: new.time_ms(kind) - old.time_ms(kind) for kind in get_args(PeriodKind)}
    return Change(
        function=name,
        old_ms=old.latency_ms,
        new_ms=round(latency_at(new, old.cpu_probe_ms or new.cpu_probe_ms or 0.0), 3),
        kinds_ms={kind: round(difference, 3) for kind, difference in kinds.items()},
        facts=tuple(fact for fact in _FACTS if getattr(old, fact) != getattr(new, fact)),
    )
