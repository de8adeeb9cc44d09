"""Which buckets objects go to, as a workflow declares it, and what they take of memory there."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from .triggers import SESSION_BYTES, TRIGGERS

Task = TypeVar("Task", bound=Hashable)
#: Names of buckets, each with whether each item of a list is an object there.
Gives = Sequence[tuple[str, bool]]

#: The name under which a function that runs alone answers, as one JSON list, all that it has
#: emitted: triples of a name, a group or null, and a text.
ALL = "*"
#: What a run takes in memory beside its objects, in bytes: the firing, its number, what is noted of
#: its attempts and of its session.
RUN_BYTES = 800


class Routes(Generic[Task]):
    """The ways of objects through the buckets of a workflow.

    Args:
        declared: as `wrap.core.buckets.flow.Flow` has it.
    """

    def __init__(self, declared: Mapping[str, Any]) -> None:
        #: The buckets that events go to.
        self.entry: Gives = [(name, True) for name in declared["entry"]]
        self._declared = declared
        self._gives: Mapping[Task, Gives] = declared["gives"]

    def gives(self, task: Task) -> Gives:
        """The buckets that a task gives to."""
        return self._gives.get(task, ())

    def answers(self, task: Task) -> bool:
        """Whether no bucket takes what a task gives."""
        return not self._gives.get(task)

    def targets(self, task: Task, name: str) -> tuple[Sequence[str], str]:
        """As the function `targets` says."""
        return targets(self._declared, task, name)

    def upstream(self, keeps_session: Mapping[str, bool]) -> dict[str, set[Task]]:
        """The tasks of whose end a session's objects in each bucket may wait.

        `keeps_session` says of each bucket whether what it fires stays in the session. Each bucket
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
        """Bytes that buckets will take for a value.

        Args:
            gives: the buckets that get it, and whether each of its items is an object there.
            size: its bytes.
            items: how many items it has.
            overhead: what an object takes beside its own bytes.
        """
        total = 0
        for name, each in gives:
            bucket = self._declared["buckets"][name]
            single = bucket.get("class") is None and TRIGGERS[bucket["trigger"]].single
            runs = len(bucket["starts"]) if single else 0
            own = overhead + SESSION_BYTES + runs * RUN_BYTES
            total += (items if each else 1) * own + size * (1 + runs)
        return total


def targets(declared: Mapping[str, Any], task: Any, name: str) -> tuple[Sequence[str], str]:
    """The buckets that get what `task` emits as `name`, and its name there; ValueError if none."""
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
