"""The objects of one execution in one process, and the inputs that are made of them.

One predecessor's output is passed on byte for byte. Several become a JSON list joined from their
texts, so that no number or key changes on the way: what parses as strict JSON is JSON, else a
string.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping

from wrap.core.errors import TaskError
from wrap.core.program import Key, Source
from wrap.values.budget import HELD_FROM, MemoryBudget
from wrap.values.value import JSON, Object, is_json, quoted


class Inputs:
    """Objects by the tasks that gave them, None for the request; joined ones are made once.

    Args:
        budget: says which of them stay in memory; without one all do.
    """

    def __init__(self, objects: Mapping[Key, Object], budget: MemoryBudget | None = None) -> None:
        self._objects: dict[Key, Object] = {}
        self._budget = budget
        #: Those whose memory matters.
        self.large: set[Key] = set()
        self._joined: dict[tuple[int, ...], Object] = {}
        self._joining = threading.Lock()
        self.add(objects)

    def add(self, objects: Mapping[Key, Object]) -> None:
        """Take in more of them."""
        self._objects.update(objects)
        for key, each in objects.items():
            if each.size >= HELD_FROM:
                self.large.add(key)
                if self._budget is not None:
                    self._budget.hold(self, key, each)

    def drop(self, key: Key) -> None:
        """Keep one of them no longer, nor what it was joined to."""
        self._objects.pop(key, None)
        if key in self.large:
            self.large.remove(key)
            for of in list(self._joined):  # beside what is being joined, which is not waited for
                if key in of:
                    del self._joined[of]
            if self._budget is not None:
                self._budget.release(self, key)

    def close(self) -> None:
        """The execution has ended."""
        if self._budget is not None and self.large:
            self._budget.drop(self)

    @property
    def size(self) -> int:
        """The bytes of all of them."""
        return sum(each.size for each in self._objects.values())

    @property
    def sizes(self) -> dict[Key, int]:
        """The bytes of each."""
        return {key: each.size for key, each in self._objects.items()}

    @property
    def missing(self) -> list[Object]:
        """Those of which only the names have come."""
        return [each for each in self._objects.values() if each.missing]

    def __contains__(self, key: object) -> bool:
        return key in self._objects

    def __getitem__(self, key: Key) -> Object:
        return self._objects[key]

    def resolve(self, source: Source) -> Object:
        """The object that `source` stands for. Tasks with the same source get the same one.

        Raises TaskError where something would have to be joined that is no text, ``not-text``, or
        that is nested too deep, ``too-deep``.
        """
        if not isinstance(source, list):
            return self._objects[source]
        if not source:
            return Object("")
        key = tuple(source)
        with self._joining:  # what takes the same list begins at once
            if key not in self._joined:
                self._joined[key] = Object("".join(self._parts(key)), JSON)
            return self._joined[key]

    def _parts(self, tasks: tuple[int, ...]) -> Iterator[str]:
        """Of their list: to put brackets around a large text would copy it again."""
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
