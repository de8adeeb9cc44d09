"""The triggers of buckets that outlive executions: which arriving objects fire together.

A trigger of an execution fires once (`wrap.core.triggers`); these triggers fire repeatedly. They
have no clock: callers pass times in seconds, and triggers tell when to be called next. Objects may
arrive in any order and repeatedly; each object counts once.

References
----------
Pheromone (NSDI'23), §III-B and Table I: the triggers; Fig. 5: the interface of further ones.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

Value = TypeVar("Value")
#: The number of an object: the number of its source, and its position in the source's output. So a
#: retry gives its objects the same numbers.
Number = tuple[int, ...]

#: The bytes of memory for the records of a session whose objects wait.
SESSION_BYTES = 400
#: How many numbers of processed objects are remembered, to detect duplicates.
_REMEMBERED = 10_000


class Item(NamedTuple, Generic[Value]):
    """An object in a bucket."""

    #: The identity of the object.
    number: Number
    value: Value
    #: Its origin: a request with its events, or a window that has fired.
    session: Number = ()
    #: The name and the group, for triggers that use them.
    name: str = ""
    group: str = ""
    #: The size in bytes.
    size: int = 0


class Batch(NamedTuple, Generic[Value]):
    """Objects that fire together (at least one object), and when they were due."""

    items: Sequence[Item[Value]]
    due_s: float


class StreamTrigger(ABC, Generic[Value]):
    """Decides repeatedly when a bucket fires. The base class of users' triggers."""

    #: Whether functions get the single fired object instead of a list.
    single: ClassVar[bool] = False
    #: Whether firings stay in the session of their objects. Otherwise each begins a session.
    keeps_session: ClassVar[bool] = False
    #: Whether to call `on_sources_ended`.
    waits_for_end: ClassVar[bool] = False

    def __init__(self) -> None:
        #: The time of the next call of `on_time`; infinite if none is due.
        self.due_s = math.inf
        #: Bytes of the objects that wait.
        self.size = 0
        #: The run time in seconds after which a source is run again.
        self.rerun_after_s = math.inf
        self._started = OrderedDict[Number, float]()

    @abstractmethod
    def on_object(self, item: Item[Value], now_s: float) -> Sequence[Batch[Value]]:
        """Process an object and return what fires now. Duplicates change nothing."""

    def on_source_started(self, source: Number, now_s: float) -> None:
        """Record the start of a function whose objects come here."""
        if self.rerun_after_s < math.inf:
            self._started[source] = now_s
            self._started.move_to_end(source)

    @property
    def rerun_due_s(self) -> float:
        """The time of the next call of `due_for_rerun`."""
        return next(iter(self._started.values()), math.inf) + self.rerun_after_s

    def due_for_rerun(self, now_s: float) -> Sequence[Number]:
        """Return the sources to run again if they still run; each is returned once per start."""
        late = list[Number]()
        while self._started and self.rerun_due_s <= now_s:
            late.append(self._started.popitem(last=False)[0])
        return late

    def on_time(self, now_s: float) -> Sequence[Batch[Value]]:
        """Return what fires at this time."""
        return ()

    def wants(self, session: Number) -> bool:
        """Return whether further objects of a session can change anything."""
        return True

    def on_sources_ended(self, session: Number, now_s: float) -> Sequence[Batch[Value]]:
        """Return what fires at the end of a session, and forget the session."""
        return ()

    def drain(self, now_s: float) -> Sequence[Batch[Value]]:
        """Fire now what would fire in time, because no further object comes."""
        return self.on_time(self.due_s) if self.due_s < math.inf else ()


class Immediate(StreamTrigger[Value]):
    """Fires with each object."""

    single = keeps_session = True

    def __init__(self) -> None:
        super().__init__()
        self._taken = Recent()

    def on_object(self, item: Item[Value], now_s: float) -> Sequence[Batch[Value]]:
        return (Batch((item,), now_s),) if self._taken.adds(item.number) else ()


class ByName(Immediate[Value]):
    """Fires with each object of some names, and drops all others."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__()
        self._names = frozenset(names)

    def on_object(self, item: Item[Value], now_s: float) -> Sequence[Batch[Value]]:
        return super().on_object(item, now_s) if item.name in self._names else ()


class _Window(StreamTrigger[Value]):
    """Collects objects that fire together, across sessions."""

    def __init__(self) -> None:
        super().__init__()
        self._items: dict[Number, Item[Value]] = {}
        self._taken = Recent()

    def _add(self, item: Item[Value]) -> bool:
        if item.number in self._items or item.number in self._taken:
            return False
        self._items[item.number] = item
        self.size += item.size
        return True

    def _take(self, due_s: float) -> Sequence[Batch[Value]]:
        """Return all held objects, if any, as one batch in the order of their numbers."""
        self.due_s = math.inf
        if not self._items:
            return ()
        items = sorted(self._items.values(), key=_number)
        for item in items[-_REMEMBERED:]:
            self._taken.adds(item.number)
        self._items, self.size = {}, 0
        return (Batch(items, due_s),)

    def on_time(self, now_s: float) -> Sequence[Batch[Value]]:
        return self._take(self.due_s) if now_s >= self.due_s else ()

    def drain(self, now_s: float) -> Sequence[Batch[Value]]:
        return self._take(now_s)


class ByBatchSize(_Window[Value]):
    """Fires with every `size` objects, or with fewer after the first has waited for `wait_s`."""

    def __init__(self, size: int, wait_s: float = math.inf) -> None:
        super().__init__()
        self._most, self._wait_s = size, wait_s

    def on_object(self, item: Item[Value], now_s: float) -> Sequence[Batch[Value]]:
        if self._add(item):
            if len(self._items) == self._most:
                return self._take(now_s)
            if len(self._items) == 1:
                self.due_s = now_s + self._wait_s
        return ()


class ByTime(_Window[Value]):
    """Fires at the end of each window in which objects arrived.

    A window begins at a multiple of its length and ends before the next multiple.
    """

    def __init__(self, window_s: float) -> None:
        super().__init__()
        self._window_s = window_s

    def on_object(self, item: Item[Value], now_s: float) -> Sequence[Batch[Value]]:
        before = self.on_time(now_s)
        if self._add(item) and len(self._items) == 1:
            self.due_s = (math.floor(now_s / self._window_s) + 1) * self._window_s
        return before


class _InSession(StreamTrigger[Value]):
    """Collects the objects of each session until nothing more can come of it."""

    keeps_session = waits_for_end = True

    def __init__(self) -> None:
        super().__init__()
        self._sessions: dict[Number, dict[Number, Item[Value]]] = {}
        self._fired: set[Number] = set()
        self._ended = Recent()

    def on_object(self, item: Item[Value], now_s: float) -> Sequence[Batch[Value]]:
        session = item.session
        if not self.wants(session):
            return ()
        items = self._sessions.get(session)
        if items is None:
            items = self._sessions[session] = {}
            self.size += SESSION_BYTES
        if item.number in items:
            return ()
        items[item.number] = item
        self.size += item.size
        found = self._complete(items)
        if not found:
            return ()
        self._fired.add(session)
        self._forget(session)
        return (Batch(found, now_s),)

    def wants(self, session: Number) -> bool:
        return session not in self._fired and session not in self._ended

    def _forget(self, session: Number) -> Iterable[Item[Value]]:
        if session not in self._sessions:
            return ()
        items = self._sessions.pop(session).values()
        self.size -= sum(each.size for each in items) + SESSION_BYTES
        return items

    def _complete(self, items: Mapping[Number, Item[Value]]) -> Sequence[Item[Value]]:
        """Return what fires after the arrival of a session's latest object; usually nothing."""
        return ()

    def _at_end(self, items: Sequence[Item[Value]]) -> Iterable[Sequence[Item[Value]]]:
        """Return what fires of a complete session that has not fired."""
        return ()

    def on_sources_ended(self, session: Number, now_s: float) -> Sequence[Batch[Value]]:
        if not self._ended.adds(session):
            return ()
        self._fired.discard(session)
        found = self._at_end(sorted(self._forget(session), key=_number))
        return [Batch(each, now_s) for each in found if each]


class BySet(_InSession[Value]):
    """Fires once a session, with the first object of each name, in the order of the names."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__()
        self._names = tuple(names)

    def _complete(self, items: Mapping[Number, Item[Value]]) -> Sequence[Item[Value]]:
        if len(items) < len(self._names):
            return ()
        by_name: dict[str, Item[Value]] = {}
        for item in items.values():
            by_name.setdefault(item.name, item)
        there = [by_name[name] for name in self._names if name in by_name]
        return there if len(there) == len(self._names) else ()


class Redundant(_InSession[Value]):
    """Fires once a session, with the first k of the n objects that may come."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self._k = k

    def _complete(self, items: Mapping[Number, Item[Value]]) -> Sequence[Item[Value]]:
        return sorted(items.values(), key=_number) if len(items) == self._k else ()


class DynamicJoin(_InSession[Value]):
    """Fires once a session, when all its functions have ended: with all their objects."""

    def _at_end(self, items: Sequence[Item[Value]]) -> Iterable[Sequence[Item[Value]]]:
        return (items,)


class DynamicGroup(_InSession[Value]):
    """Fires when all functions of a session have ended, once for each group."""

    def _at_end(self, items: Sequence[Item[Value]]) -> Iterable[Sequence[Item[Value]]]:
        groups: dict[str, list[Item[Value]]] = {}
        for item in items:
            groups.setdefault(item.group, []).append(item)
        return groups.values()


#: Name in a document -> trigger.
TRIGGERS: Mapping[str, type[StreamTrigger[Any]]] = {
    "immediate": Immediate,
    "by-name": ByName,
    "by-set": BySet,
    "by-batch-size": ByBatchSize,
    "by-time": ByTime,
    "redundant": Redundant,
    "dynamic-join": DynamicJoin,
    "dynamic-group": DynamicGroup,
}


class Recent:
    """The most recently added numbers, at most 10,000."""

    def __init__(self) -> None:
        self._numbers = set[Number]()
        self._in_order = deque[Number]()

    def __contains__(self, number: object) -> bool:
        return number in self._numbers

    def adds(self, number: Number) -> bool:
        """Add a number; return whether it is new."""
        if number in self._numbers:
            return False
        self._numbers.add(number)
        self._in_order.append(number)
        if len(self._numbers) > _REMEMBERED:
            self._numbers.remove(self._in_order.popleft())
        return True


def _number(item: Item[Any]) -> Number:
    return item.number
