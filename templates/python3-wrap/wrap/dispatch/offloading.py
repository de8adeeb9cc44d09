"""An execution that waits for workers for too long runs on another replica of the wrap."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from wrap.core import events as on
from wrap.core.errors import TaskError
from wrap.core.program import Key
from wrap.net.messages import Request, Result
from wrap.values.value import Object

if TYPE_CHECKING:
    from wrap.dispatch.execution import Execution, Outcome


def offload_later(execution: Execution) -> None:
    """Have another replica run an execution, if it waits for too long and can be run whole.

    Tasks of live streams stay here, because another replica begins its tasks one after another.
    Runs of buckets stay here, because the buckets are here.
    """
    offload, part, data = execution.runtime.offload, execution.part, execution.data
    if offload is None or execution.is_admitted or not part.is_whole:
        return
    if execution.live or execution.into_buckets is not None:
        return
    given: dict[Key, Object] = {None: data[None]} if None in data else {}
    request = Request(execution.ident, sorted(part.place_of), given, frozenset(part.gives))
    wanted, returned = partial(_is_wanted, execution), partial(_returned, execution)
    lend = partial(offload.lend, request, execution.deadline, wanted, returned)
    execution.runtime.loop.call_at(
        time.monotonic() + offload.after_s, partial(execution.event, lend)
    )


def _is_wanted(execution: Execution) -> bool:
    """Whether an execution still waits; if so, another replica runs the execution from now on."""
    with execution.lock:
        execution.is_offloaded = not execution.is_admitted and not execution.over
        return execution.is_offloaded


def _returned(execution: Execution, outcome: Outcome | None) -> None:
    if outcome is None:  # the replica was lost: the execution runs here after all
        execution.is_offloaded = False
        execution.admit_later()
    elif isinstance(outcome, TaskError):
        execution.fail(outcome)
    else:
        execution.event(_came_back, execution, outcome)


def _came_back(execution: Execution, results: list[Result]) -> None:
    if execution.peers is not None:
        execution.peers.begin(execution)
    execution.tell(on.Offloaded(results))
