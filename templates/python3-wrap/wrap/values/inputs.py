"""The objects of one execution in one process, and the inputs made from them.

A single predecessor's output is passed on byte for byte. Several outputs become a JSON list, joined
from their texts, so that no number or key changes. An output that parses as strict JSON is inserted
as JSON, any other as a string.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping

from wrap.core.errors import TaskError
from wrap.core.program import Key, Source
from wrap.values.budget import HELD_FROM, MemoryBudget
from wrap.values.value import JSON, Object, is_json, quoted


class Inputs:
    """Objects by the task that gave them, or None for the request. Each list is joined once.

    Args:
        budget: decides which objects stay in memory; without one all do.
    """

    def __init__(self, objects: Mapping[Key, Object], budget: MemoryBudget | None = None) -> None:
        self._objects: dict[Key, Object] = {}
        self._budget = budget
        #: The keys of objects that are large enough to be accounted for.
        self.large: set[Key] = set()
        self._joined: dict[tuple[int, ...], Object] = {}
        self._joining = threading.Lock()
        self.add(objects)

    def add(self, objects: Mapping[Key, Object]) -> None:
        self._objects.update(objects)
        for key, each in objects.items():
            if each.size >= HELD_FROM:
                self.large.add(key)
                if self._budget is not None:
                    self._budget.hold(self, key, each)

    def drop(self, key: Key) -> None:
        """Drop an object, and the lists that it was joined to."""
        self._objects.pop(key, None)
        if key in self.large:
            self.large.remove(key)
            for of in list(self._joined):  # except a list that is being joined just now
                if key in of:
                    del self._joined[of]
            if self._budget is not None:
                self._budget.release(self, key)

    def close(self) -> None:
        if self._budget is not None and self.large:
            self._budget.drop(self)

    @property
    def size(self) -> int:
        return sum(each.size for each in self._objects.values())

    @property
    def sizes(self) -> dict[Key, int]:
        return {key: each.size for key, each in self._objects.items()}

    @property
    def missing(self) -> list[Object]:
        """The objects of which only the names have arrived."""
        return [each for each in self._objects.values() if each.missing]

    def __contains__(self, key: object) -> bool:
        return key in self._objects

    def __getitem__(self, key: Key) -> Object:
        return self._objects[key]

    def resolve(self, source: Source) -> Object:
        """Return the object for `source`; tasks with the same source get the same object.

        Raises TaskError if an output to be joined is no text, ``not-text``, or is nested too deep,
        ``too-deep``.
        """
        if not isinstance(source, list):
            return self._objects[source]
        if not source:
            return Object("")
        key = tuple(source)
        with self._joining:  # tasks with the same list begin at the same time
            if key not in self._joined:
                self._joined[key] = Object("".join(self._parts(key)), JSON)
            return self._joined[key]

    def _parts(self, tasks: tuple[int, ...]) -> Iterator[str]:
        """Yield the parts of the list: adding brackets to a large text would copy it again."""
        yield "["
        for number, task in enumerate(tasks, 1):
            if number > 1:
                yield ","
            try:
                text = self._objects[task].text("strict")
            except UnicodeDecodeError as error:
                message = (
                    f"output {number} of {len(tasks)} that are joined to a JSON list is not UTF-8 "
                    f"({error}): encode it, in base64 for example"
                )
                raise TaskError("not-text", message) from error
            try:
                yield from (text.strip(),) if is_json(text) else quoted(text)
            except RecursionError as error:
                message = (
                    f"output {number} of {len(tasks)} that are joined to a JSON list is nested "
                    "deeper than can be read"
                )
                raise TaskError("too-deep", message) from error
        yield "]"
