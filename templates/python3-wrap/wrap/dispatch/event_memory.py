"""Reserves memory for events, and for outputs of functions of buckets, before they are stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from wrap.core.buckets.contents import most_items
from wrap.core.buckets.routes import Gives, Routes
from wrap.dispatch.event_objects import OBJECT_BYTES, Objects
from wrap.values.quota import GIVEN, Quota
from wrap.values.value import Object

#: Bytes that reading a list takes for each item.
_READING_BYTES = 72


class EventMemory:
    """Computes the memory of objects from their sizes and from the buckets that get them.

    Args:
        copies: how many copies of a request exist beside its events, as while it is written.
    """

    def __init__(self, routes: Routes[str], objects: Objects, quota: Quota, copies: int) -> None:
        self._routes = routes
        self._objects = objects
        self._quota = quota
        self._copies = copies

    @contextmanager
    def events(self, given: Object) -> Iterator[tuple[Sequence[Object], int]]:
        """Reserve memory for a request's events; yield them and their bytes. Raises as `given`."""
        content, what, quota = given.view(), "what came in the request", self._quota
        copies = given.memory + self._copies * len(content)
        most, events = most_items(content), None
        cost = copies + self._cost(self._routes.entry, len(content), most)
        if cost > quota.left:  # a list of few large items has many commas too
            least = self._cost(self._routes.entry, len(content), 1)
            with quota.reserved(copies + max(least, most * _READING_BYTES), what):
                events = self._objects.items(given)
            cost = copies + self._cost(self._routes.entry, len(content), len(events))
        with quota.reserved(cost, what):
            yield self._objects.items(given) if events is None else events, cost

    def given(
        self, task: str, gives: Gives, value: Object | None, is_answer: bool
    ) -> AbstractContextManager[None]:
        """Reserve memory for an output (None: no memory) to buckets, or to the answer.

        Raises TaskError, ``full`` or ``too-large``.
        """
        if value is None:
            return nullcontext()
        if not gives:
            cost = self._objects.size(value) if is_answer else 0
            return self._quota.reserved(cost, f"what {task} answers", GIVEN)
        what, content, each = f"what {task} gives", value.view(), any(each for _, each in gives)
        most = most_items(content) if each else 1
        cost = self._cost(gives, len(content), most)
        if each and cost > (GIVEN - 1) * self._quota.most + self._quota.left:
            with self._quota.reserved(most * _READING_BYTES, what, GIVEN):
                most = len(self._objects.items(value))
            cost = self._cost(gives, len(content), most)
        return self._quota.reserved(cost, what, GIVEN)

    def _cost(self, gives: Gives, size: int, items: int) -> int:
        return self._routes.cost(gives, size, items, OBJECT_BYTES)
