"""Which objects of an execution a wrap holds, and for how long."""

from __future__ import annotations

from collections.abc import Collection, Set

from wrap.core.program import Key, Scope, keys


class Holdings:
    """The objects in this wrap, and the tasks that never need their inputs again.

    Args:
        large_from: the size in bytes from which an object is dropped as soon as possible.
        is_shared: whether other wraps take part, and may ask for the request again.
    """

    def __init__(self, part: Scope, large_from: int, is_shared: bool) -> None:
        self._part = part
        self._large_from = large_from
        self._is_shared = is_shared
        self._held: set[Key] = set()
        self._large: set[Key] = set()
        #: Tasks that have ended and need not run again.
        self._settled: set[int] = set()

    def __contains__(self, key: object) -> bool:
        return key in self._held

    @property
    def any_large(self) -> bool:
        """Whether there is an object whose memory matters."""
        return bool(self._large)

    def add(self, key: Key, size: int) -> None:
        self._held.add(key)
        if size >= self._large_from:
            self._large.add(key)

    def release(self, ended: int, unanswered: Set[int]) -> list[Key]:
        """Return the objects that no task needs after the end of `ended`, and drop them.

        A task may run again if its output is not here and an unsettled task needs it.
        """
        dropped: list[Key] = []
        part = self._part
        # Tasks that live streams connect are settled together, if this wrap learns of all their
        # ends.
        waiting = sorted(part.components.get(ended, {ended}))
        if not self._may_settle(waiting, unanswered):
            return []
        while waiting:
            task = waiting.pop()
            if task not in self._held and not self._settled.issuperset(part.users.get(task, ())):
                continue
            self._settled.add(task)
            for key in keys(part.sources[task]):
                if key not in self._held:
                    if key is not None and key not in self._settled:
                        waiting.append(key)
                elif key in self._large and not self._is_wanted(key):
                    self._held.remove(key)
                    self._large.remove(key)
                    dropped.append(key)
        return dropped

    def _is_wanted(self, key: Key) -> bool:
        elsewhere = key in self._part.gives or (key is None and self._is_shared)
        return elsewhere or not self._settled.issuperset(self._part.users[key])

    def _may_settle(self, tasks: Collection[int], unanswered: Set[int]) -> bool:
        place_of = self._part.place_of
        return len(tasks) == 1 or all(each in place_of and each not in unanswered for each in tasks)
