"""Passes objects between wraps through a store: messages carry only their names.

This is the path ``store``. An object is written once, under EXECUTION/TASK, for all its receivers.
The coordinator deletes it at the end of its execution. An error of the store fails the execution by
name: a plan that says ``store`` does not allow another path.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from wrap.core.errors import TaskError
from wrap.core.program import Key
from wrap.core.wrap_spec import Wrap
from wrap.net.messages import Ident, Request, Result
from wrap.net.object_store import Store
from wrap.net.transport import Answered, Forwarded, Transport
from wrap.values.value import Object

#: The timeout for deleting the objects of an execution, in seconds.
_DELETING_S = 5.0


def name_of(execution: int, key: Key) -> str:
    """Return the name in the store of the object of `key`: a task, or the request."""
    return f"{execution}/{'request' if key is None else key}"


def put(
    store: Store | None, execution: int, objects: Mapping[Key, Object], deadline: float
) -> None:
    """Write those `objects` that the store, if there is one, lacks; TaskError, ``store``."""
    for key, each in objects.items():
        if store is not None and not each.stored:
            name = name_of(execution, key)
            store.put(name, each.view(), deadline)
            each.stored = name


def get(store: Store | None, objects: Iterable[Object], deadline: float) -> None:
    """Read the contents of those `objects` that came by name. Raises TaskError, ``store``."""
    for each in objects:
        if each.missing:
            if store is None:
                raise TaskError("store", "this wrap has no store: deploy all wraps of one plan")
            each.fill(store.get(each.stored, deadline))


def delete(store: Store, names: Sequence[str]) -> None:
    """Delete objects from `store`; an error is only logged."""
    try:
        store.delete(names, time.monotonic() + _DELETING_S)
    except TaskError as error:
        print(f"{len(names)} objects stay until they expire: {error.message}")


def outputs(results: Iterable[Result]) -> dict[Key, Object]:
    """Return task -> the object of its result."""
    return {each.task: each.output for each in results if each.output is not None}


@dataclass
class _Kept:
    """The objects of an execution in a store."""

    #: Includes objects that are still to be written.
    names: set[str] = field(default_factory=set)
    over: bool = False
    #: Held by the thread that writes an object, as others may want to write it too.
    putting: dict[Key, threading.Lock] = field(default_factory=dict)


class ByStore(Transport):
    """Calls wraps through `transport`, and passes the objects through `store`.

    Outputs of other wraps that `wrap` does not need stay in the store; only their names go on.
    """

    def __init__(self, wrap: Wrap, transport: Transport, store: Store) -> None:
        self._wrap = wrap
        self._transport = transport
        self._store = store
        #: Execution -> its objects, for as long as the execution is referenced.
        self._kept: WeakKeyDictionary[Ident, _Kept] = WeakKeyDictionary()

    def call(
        self, wrap: str, request: Request, deadline: float, sent: Callable[[], None]
    ) -> list[Result]:
        """Call a wrap as `wrap.net.transport.Transport.call`; also raises ``store``."""
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
            if kept.over:  # the execution was given up meanwhile
                delete(self._store, sorted(kept.names))

    def forward(self, wrap: str, request: Forwarded, deadline: float) -> Answered:
        return self._transport.forward(wrap, request, deadline)

    def release(self, execution: Ident) -> None:
        kept = self._kept.setdefault(execution, _Kept())
        kept.over = True
        if kept.names:
            delete(self._store, sorted(kept.names))
