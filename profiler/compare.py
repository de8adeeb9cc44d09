"""What changed between two profiles of a workflow, on a machine whose speed has not."""

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
    """One function's change; ``old_ms`` or ``new_ms`` is missing where it was not profiled.

    Attributes:
        old_ms, new_ms: latencies, the new one as it would be at the old one's speed of the machine.
        kinds_ms: by how much the time of each kind grew.
        facts: fields that differ otherwise.
    """

    function: str
    old_ms: float | None = None
    new_ms: float | None = None
    kinds_ms: dict[str, float] = Field(default_factory=dict)
    facts: tuple[str, ...] = ()

    @property
    def ratio(self) -> float | None:
        """New over old latency."""
        return self.new_ms / self.old_ms if self.old_ms and self.new_ms is not None else None


class Changes(Document):
    """The changes of all functions of either profile."""

    changes: tuple[Change, ...]


def compare(old: Profile, new: Profile) -> Changes:
    """What `new` has that is not as in `old`, function by function, the old ones first."""
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
