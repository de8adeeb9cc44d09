"""The triggers of buckets that outlive executions: which of the objects that come fire together.

Where a trigger of an execution fires once (`wrap.core.triggers`), one of these fires again and
again. They have no clock: times are given to them, in seconds, and they say when they are to be
asked again. Whatever the order in which objects come, and however often one does, it is taken once.

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
#: Of an object: that of what gave it, and its place in what that gave. So what is run again gives
#: the same numbers.
Number = tuple[int, ...]

#: What is noted of a session whose objects wait takes in memory, in bytes.
SESSION_BYTES = 400
#: So many numbers of what has been taken are remembered, for those that come again.
_REMEMBERED = 10_000


class Item(NamedTuple, Generic[Value]):
    """An object in a bucket."""

    #: Which one it is.
    number: Number
    value: Value
    #: What it came of: a request with its events, or a window that has fired.
    session: Number = ()
    #: What triggers go by that ask for them.
    name: str = ""
    group: str = ""
    #: Its bytes.
    size: int = 0


class Batch(NamedTuple, Generic[Value]):
    """Objects that fire together, at least one, and when they were due to."""

    items: Sequence[Item[Value]]
    due_s: float


class StreamTrigger(ABC, Generic[Value]):
    """Decides when a bucket fires, again and again; base class of those that users write."""

    #: Whether functions get the one object that has fired, and no list.
    single: ClassVar[bool] = False
    #: Whether what fires is of the session of its objects. Else it begins one.
    keeps_session: ClassVar[bool] = False
    #: Whether `on_sources_ended` is to be called.
    waits_for_end: ClassVar[bool] = False

    def __init__(self) -> None:
        #: When `on_time` is to be asked next; infinite where it need not be.
        self.due_s = math.inf
        #: Bytes of the objects that wait.
        self.size = 0
        #: A source that has been running for so long is to be run again.
        self.rerun_after_s = math.inf
        self._started = OrderedDict[Number, float]()

    @abstractmethod
    def on_object(self, item: Item[Value], now_s: float) -> Sequence[Batch[Value]]:
        """Take an object in; what fires now. One that has come before changes nothing."""

    def on_source_started(self, source: Number, now_s: float) -> None:
        """Take note that a function was started whose objects come here."""
        if self.rerun_after_s < math.inf:
            self._started[source] = now_s
            self._started.move_to_end(source)

    @property
    def rerun_due_s(self) -> float:
        """When `due_for_rerun` is to be asked next."""
        return next(iter(self._started.values()), math.inf) + self.rerun_after_s

    def due_for_rerun(self, now_s: float) -> Sequence[Number]:
        """The sources that are to be run again if they still run; each is said once a start."""
        late = list[Number]()
        while self._started and self.rerun_due_s <= now_s:
            late.append(self._started.popitem(last=False)[0])
        return late

    def on_time(self, now_s: float) -> Sequence[Batch[Value]]:
        """What fires because a time has passed."""
        return ()

    def wants(self, session: Number) -> bool:
        """Whether further objects of a session can change anything."""
        return True

    def on_sources_ended(self, session: Number, now_s: float) -> Sequence[Batch[Value]]:
        """What fires because nothing more comes of a session; nothing is kept of it then."""
        return ()

    def drain(self, now_s: float) -> Sequence[Batch[Value]]:
        """What would fire in time fires now, as nothing more is to come."""
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
    """Fires with each object of some names, and drops the others."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__()
        self._names = frozenset(names)

    def on_object(self, item: Item[Value], now_s: float) -> Sequence[Batch[Value]]:
        return super().on_object(item, now_s) if item.name in self._names else ()


class _Window(StreamTrigger[Value]):
    """Has objects that fire together, whatever they came of."""

    def __init__(self) -> None:
        super().__init__()
        self._items: dict[Number, Item[Value]] = {}
        self._taken = Recent()

    def _add(self, item: Item[Value]) -> bool:
        """Take an object in; whether it is new."""
        if item.number in self._items or item.number in self._taken:
            return False
        self._items[item.number] = item
        self.size += item.size
        return True

    def _take(self, due_s: float) -> Sequence[Batch[Value]]:
        """All that is held, if there is something, in the order of the numbers."""
        self.due_s = math.inf
        if not self._items:
            return ()
        items = sorted(self._items.values(), key=_number)
        for item in items[-_REMEMBERED:]:
            self._taken.adds(item.number)
        self._items, self.size = {}, 0
        return (Batch(items, due_s),)

    def drain(self, now_s: float) -> Sequence[Batch[Value]]:
        return self._take(now_s)


class ByBatchSize(_Window[Value]):
    """Fires with every so many objects; with fewer where the first has waited for long enough."""

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

    def on_time(self, now_s: float) -> Sequence[Batch[Value]]:
        return self._take(self.due_s) if now_s >= self.due_s else ()


class ByTime(_Window[Value]):
    """Fires at the end of each window in which something came.

    A window has what comes from a multiple of its length on until before the next one.
    """

    def __init__(self, window_s: float) -> None:
        super().__init__()
        self._window_s = window_s

    def on_object(self, item: Item[Value], now_s: float) -> Sequence[Batch[Value]]:
        before = self.on_time(now_s)
        if self._add(item) and len(self._items) == 1:
            self.due_s = (math.floor(now_s / self._window_s) + 1) * self._window_s
        return before

    def on_time(self, now_s: float) -> Sequence[Batch[Value]]:
        return self._take(self.due_s) if now_s >= self.due_s else ()


class _InSession(StreamTrigger[Value]):
    """Has the objects of each session until nothing more can come of it."""

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
        """What fires of a session's objects, the last of which has just come; mostly nothing."""
        return ()

    def _at_end(self, items: Sequence[Item[Value]]) -> Iterable[Sequence[Item[Value]]]:
        """What fires of a session that has not fired and whose objects are all there."""
        return ()

    def on_sources_ended(self, session: Number, now_s: float) -> Sequence[Batch[Value]]:
        if not self._ended.adds(session):
            return ()
        self._fired.discard(session)
        found = self._at_end(sorted(self._forget(session), key=_number))
        return [Batch(each, now_s) for each in found if each]


class BySet(_InSession[Value]):
    """Fires once a session, when objects of all names have come: with the first of each, in their
    order."""

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
    """Fires once a session, with the first k objects, of the n that may come."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self._k = k

    def _complete(self, items: Mapping[Number, Item[Value]]) -> Sequence[Item[Value]]:
        return sorted(items.values(), key=_number) if len(items) == self._k else ()


class DynamicJoin(_InSession[Value]):
    """Fires once a session, when all that were started for it have ended: with what they gave."""

    def _at_end(self, items: Sequence[Item[Value]]) -> Iterable[Sequence[Item[Value]]]:
        return (items,)


class DynamicGroup(_InSession[Value]):
    """Fires when all that were started for a session have ended, once for each group."""

    def _at_end(self, items: Sequence[Item[Value]]) -> Iterable[Sequence[Item[Value]]]:
        groups: dict[str, list[Item[Value]]] = {}
        for item in items:
            groups.setdefault(item.group, []).append(item)
        return groups.values()


#: What a document calls the triggers.
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
    """The last numbers that were added, so many."""

    def __init__(self) -> None:
        self._numbers = set[Number]()
        self._in_order = deque[Number]()

    def __contains__(self, number: object) -> bool:
        return number in self._numbers

    def adds(self, number: Number) -> bool:
        """Add a number; whether it was not there."""
        if number in self._numbers:
            return False
        self._numbers.add(number)
        self._in_order.append(number)
        if len(self._numbers) > _REMEMBERED:
            self._numbers.remove(self._in_order.popleft())
        return True


def _number(item: Item[Any]) -> Number:
    return item.number
