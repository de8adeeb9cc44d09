"""Three wraps of one workflow, as each of them declares it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wrap.core.wrap_spec import Entry, Wrap

#: The first is the entry wrap.
NAMES = ("home", "far", "near")


def over_wraps(
    place: Mapping[int, str],
    processes: Mapping[str, Sequence[Sequence[int]]],
    *,
    entry: Entry,
    **common: Any,
) -> dict[str, Wrap]:
    """Wraps by their names: the wrap of each task, the processes of each wrap, what all declare."""
    of = {name: {t: "f" for t, where in place.items() if where == name} for name in NAMES}
    return {
        name: Wrap(
            workflow="test",
            name=name,
            mechanism="pool",
            functions={"f": "flask"},
            tasks=of[name],
            processes=[list(each) for each in processes[name]],
            timeout_s=1.0,
            remotes={other: of[other] for other in NAMES if other != name},
            entry=entry if name == NAMES[0] else None,
            **common,
        )
        for name in NAMES
    }
