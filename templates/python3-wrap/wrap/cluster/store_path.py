"""How objects get to other wraps by a store: they are put there, and their names travel.

That is the path ``store``. An object is put once, whoever gets it, under EXECUTION/TASK; it stays
until its execution has ended, when the coordinator deletes it. A store that fails fails the
execution, by name: a plan that says ``store`` does not want objects to go another way.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from wrap.config.wrap_spec import Wrap
from wrap.core.errors import TaskError
from wrap.core.program import Key
from wrap.net.messages import Ident, Request, Result
from wrap.net.object_store import Store
from wrap.net.transport import Answered, Forwarded, Transport
from wrap.values.value import Object

#: How long a store may take to delete what an execution has left, in seconds.
_DELETING_S = 5.0


def name_of(execution: int, key: Key) -> str:
    """The name under which a store has the object of `key`: of a task, or of the request."""
    return f"{execution}/{'request' if key is None else key}"


def put(
    store: Store | None, execution: int, objects: Mapping[Key, Object], deadline: float
) -> None:
    """Put those of `objects` that the store, if there is one, has not yet; TaskError, ``store``."""
    for key, each in objects.items():
        if store is not None and not each.stored:
            name = name_of(execution, key)
            store.put(name, each.view(), deadline)
            each.stored = name


def get(store: Store | None, objects: Iterable[Object], deadline: float) -> None:
    """Fill those of `objects` that have come by their names. Raises TaskError, ``store``."""
    for each in objects:
        if each.missing:
            if store is None:
                raise TaskError("store", "this wrap has no store: deploy all wraps of one plan")
            each.fill(store.get(each.stored, deadline))


def delete(store: Store, names: Sequence[str]) -> None:
    """Have `store` keep these no longer; the log has it where that fails."""
    try:
        store.delete(names, time.monotonic() + _DELETING_S)
    except TaskError as error:
        print(f"{len(names)} objects stay until they expire: {error.message}")


def outputs(results: Iterable[Result]) -> dict[Key, Object]:
    """The objects of `results`, by their tasks."""
    return {each.task: each.output for each in results if each.output is not None}


@dataclass
class _Kept:
    """What a store has of an execution."""

    #: Also of objects that are still to be put.
    names: set[str] = field(default_factory=set)
    #: Whether the execution has ended.
    over: bool = False
    #: Held by the thread that puts an object, which others may want to put too.
    putting: dict[Key, threading.Lock] = field(default_factory=dict)


class ByStore:
    """Calls wraps as `transport` does, to which the objects go by `store`.

    What others give and `wrap` does not need itself stays there: its name alone goes on.
    """

    def __init__(self, wrap: Wrap, transport: Transport, store: Store) -> None:
        self._wrap = wrap
        self._transport = transport
        self._store = store
        #: By executions, for as long as anything knows of them.
        self._kept: WeakKeyDictionary[Ident, _Kept] = WeakKeyDictionary()

    def call(
        self, wrap: str, request: Request, deadline: float, sent: Callable[[], None]
    ) -> list[Result]:
        """As `wrap.net.transport.Transport.call` says; ``store`` too."""
        number = request.ident.number
        kept = self._kept.setdefault(request.ident, _Kept())
        kept.names.update(name_of(number, key) for key in (*request.objects, *request.gives))
        try:
            for key, each in request.objects.items():
                with kept.putting.setdefault(key, threading.Lock()):
                    put(self._store, number, {key: each}, deadline)
            results = self._transport.call(wrap, request, deadline, sent)
            given = outputs(results)
            needed = given.keys() if self._wrap.instances else given.keys() & self._wrap.needed
            get(self._store, [given[key] for key in needed], deadline)
            return results
        finally:
            if kept.over:  # it was given up meanwhile
                delete(self._store, sorted(kept.names))

    def forward(self, wrap: str, request: Forwarded, deadline: float) -> Answered:
        return self._transport.forward(wrap, request, deadline)

    def release(self, execution: Ident) -> None:
        kept = self._kept.setdefault(execution, _Kept())
        kept.over = True
        if kept.names:
            delete(self._store, sorted(kept.names))
