"""The routes of objects between buckets, as a workflow declares them, and their memory there."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from .triggers import SESSION_BYTES, TRIGGERS

Task = TypeVar("Task", bound=Hashable)
#: Pairs of a bucket's name and whether each item of a list is an object there.
Gives = Sequence[tuple[str, bool]]

#: The name under which a function that runs alone returns all its emissions: one JSON list of
#: triples of a name, a group or null, and a text.
ALL = "*"
#: Bytes of memory of a run beside its objects: the firing, its number, and the records of its
#: attempts and its session.
RUN_BYTES = 800


class Routes(Generic[Task]):
    """The routes of objects through the buckets of a workflow, as `Flow` has them `declared`."""

    def __init__(self, declared: Mapping[str, Any]) -> None:
        self.entry: Gives = [(name, True) for name in declared["entry"]]
        self._declared = declared
        self._gives: Mapping[Task, Gives] = declared["gives"]

    def gives(self, task: Task) -> Gives:
        return self._gives.get(task, ())

    def answers(self, task: Task) -> bool:
        """Return whether no bucket gets the output of a task."""
        return not self._gives.get(task)

    def emission_targets(self, task: Task, name: str) -> tuple[Sequence[str], str]:
        return emission_targets(self._declared, task, name)

    def upstream(self, keeps_session: Mapping[str, bool]) -> dict[str, set[Task]]:
        """Return bucket -> the tasks whose end a session's objects in it may wait for.

        `keeps_session` tells for each bucket whether its firings stay in the session. Each bucket
        comes after those whose functions give to it.
        """
        before: dict[Task, set[Task]] = {}
        found: dict[str, set[Task]] = {}
        for bucket, declared in self._declared["buckets"].items():
            found[bucket] = upstream = set[Task]()
            for task, gives in self._gives.items():
                if any(name == bucket for name, _ in gives):
                    upstream |= {task} | before.get(task, set())
            if keeps_session[bucket]:
                for task in declared["starts"]:
                    before.setdefault(task, set()).update(upstream)
        return found

    def cost(self, gives: Iterable[tuple[str, bool]], size: int, items: int, overhead: int) -> int:
        """Return the bytes that buckets will take for a value.

        Args:
            gives: the buckets that get it, and whether each of its items is an object there.
            size: its bytes.
            items: its number of items.
            overhead: the bytes of an object beside its content.
        """
        total = 0
        for name, each in gives:
            bucket = self._declared["buckets"][name]
            single = bucket.get("class") is None and TRIGGERS[bucket["trigger"]].single
            runs = len(bucket["starts"]) if single else 0
            own = overhead + SESSION_BYTES + runs * RUN_BYTES
            total += (items if each else 1) * own + size * (1 + runs)
        return total


def emission_targets(
    declared: Mapping[str, Any], task: Any, name: str
) -> tuple[Sequence[str], str]:
    """Return the buckets of what `task` emits as `name`, and its name there; ValueError if none."""
    gives = [bucket for bucket, _ in declared["gives"].get(task, ())]
    emits = declared["emits"].get(task, ())
    if name in gives:
        return [name], str(task)
    if name in emits:
        return gives, name
    there = ", ".join((*gives, *emits)) or "neither"
    raise ValueError(
        f"{task} emits {name}, which is no bucket that it gives to, nor one of the names that it "
        f"emits (gives and emits in the workflow): there is {there}"
    )
