"""Reads and writes an execution's objects in a store, while the execution waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from wrap.cluster import store_path
from wrap.core.errors import TaskError
from wrap.core.program import Key
from wrap.values.value import Object

if TYPE_CHECKING:
    from wrap.dispatch.execution import Execution


def fetched(execution: Execution, objects: Iterable[Object], then: Callable[[], None]) -> None:
    """Call `then` when all of `objects` are here; call it while an event is handled."""
    missing = [each for each in objects if each.missing]
    if missing:
        execution.runtime.threads.start(partial(_fetch, execution, missing, then))
    else:
        then()


def stored(execution: Execution, objects: Mapping[Key, Object], then: Callable[[], None]) -> None:
    """Call `then` when the store, if any, has all `objects`; call it while an event is handled."""
    if objects and execution.runtime.store is not None:
        execution.runtime.threads.start(partial(_store, execution, objects, then))
    else:
        then()


def _fetch(execution: Execution, missing: Iterable[Object], then: Callable[[], None]) -> None:
    try:
        store_path.get(execution.runtime.store, missing, execution.deadline)
    except TaskError as error:
        execution.fail(error)
    else:
        execution.event(then)


def _store(execution: Execution, objects: Mapping[Key, Object], then: Callable[[], None]) -> None:
    peer_protocol = execution.runtime.peer_protocol
    size = sum(each.size for each in objects.values())
    if peer_protocol is not None:
        peer_protocol.pressure.record_sending(peer_protocol, size)
    try:
        store_path.put(execution.runtime.store, execution.ident.number, objects, execution.deadline)
    except TaskError as error:
        execution.fail(error)
    else:
        execution.event(then)
    finally:
        if peer_protocol is not None:
            peer_protocol.pressure.record_sent(peer_protocol, size)
