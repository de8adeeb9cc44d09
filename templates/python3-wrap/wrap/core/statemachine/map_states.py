"""Runs a Map state: reads its items, begins its children, writes their results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from . import readers
from .distributed import EXCEEDED, label_of
from .errors import StatesError
from .functions import FUNCTIONS
from .map_run import FAILED, MapRun, written
from .maps import (
    asked_next,
    asked_of,
    begins_of,
    dataset_of,
    destination_of,
    input_of,
    items_of,
    items_read,
    origin_of,
    reader_of,
    tolerance_of,
    writer_of,
)
from .visits import After, Scope, Visit, at

if TYPE_CHECKING:
    from .machine import Machine

#: ``$$.Map.Item.Source`` of items from the Map's input.
_STATE_DATA = "STATE_DATA"


def enter(machine: Machine, visit: Visit) -> None:
    """Begin a Map; an ItemReader's function runs first."""
    flow = machine.flows.of(visit)
    visit.run, visit.origin, visit.dataset = None, _STATE_DATA, None
    if "ItemReader" in visit.state:
        request = flow.request(visit, "ItemReader")
        visit.origin, visit.dataset = origin_of(request), dataset_of(visit, request)
        asked = asked_of(visit.state["ItemReader"], request)
        machine.begin_task(visit, asked, None, reader_of(visit.name))
    else:
        machine.spread(visit, *_begins(machine, visit, items_of(flow, visit)))


def answered(machine: Machine, visit: Visit, text: str, after: After) -> None:
    """Handle the answer of the ItemReader's or ResultWriter's function."""
    if visit.run is not None:
        _write(machine, visit, visit.run, after)
        return
    visit.after = after
    try:
        items = items_read(machine.flows.of(visit), visit, text)
        asked = asked_next(visit)
        begins = _begins(machine, visit, items) if asked is None else None
    except StatesError as error:
        machine.fail(visit, at(visit, error), after)
    else:
        if begins is None:
            machine.begin_task(visit, asked, None, reader_of(visit.name))
        else:
            machine.spread(visit, *begins)


def unanswered(visit: Visit, error: StatesError) -> StatesError:
    """Return the error of a Map whose reading or writing function failed with `error`."""
    run, visit.run = visit.run, None
    if run is not None and run.error is not None:
        return run.error
    name = readers.FAILED if run is None else FAILED
    return at(visit, StatesError(name, f"{error.name}: {error.cause}"))


def completed(machine: Machine, visit: Visit, after: After) -> None:
    """Return or write the results of a Map or Parallel whose children have all ended."""
    run = visit.run
    if run is not None and run.destination is not None:
        run.write(visit.results, (), None)
        _write(machine, visit, run, after)
        return

    def results() -> Any:
        return visit.results if run is None else run.output(visit.results)

    machine.finish(visit, results, after)


def broken_off(
    machine: Machine, visit: Visit, error: StatesError, after: After, dropped: dict[int, Scope]
) -> None:
    """Fail a state with a child's `error`, after writing results if it has a ResultWriter.

    `dropped` are the children that were running.
    """
    run = visit.run
    if run is None:
        machine.fail(visit, error, after)
        return
    exceeded = at(visit, StatesError(EXCEEDED, f"{error.name}: {error.cause}"))
    if run.destination is None:
        machine.fail(visit, exceeded, after)
        return
    now = machine.contexts.now
    for index in dropped:
        visit.results[index] = run.ended(index, "ABORTED", None, now)
    run.write(visit.results[: visit.started], _pending(machine, visit), exceeded)
    _write(machine, visit, run, after)


def _begins(machine: Machine, visit: Visit, items: Sequence[Any]) -> tuple[Sequence[Any], float]:
    """Return the children of a Map and their concurrency; begin a MapRun. Raises StatesError."""
    flow, state = machine.flows.of(visit), visit.state
    if "ProcessorConfig" in state["ItemProcessor"]:
        writer = state.get("ResultWriter", {})
        visit.run = MapRun(
            f"{machine.contexts.workflow}/{state.get('Label') or label_of(visit.name)}",
            tolerance_of(flow, visit),
            writer.get("WriterConfig", {}),
            destination_of(flow, visit) if "Resource" in writer else None,
            partial(FUNCTIONS["States.UUID"], machine.chance),
        )
    return begins_of(flow, visit, items)


def _write(machine: Machine, visit: Visit, run: MapRun, after: After) -> None:
    """Write the next file of the results; leave the Map after the last file."""
    try:
        request = next(run.files, None)
    except StatesError as error:
        machine.fail(visit, run.error or at(visit, error), after)
        return
    visit.after = after
    if request is not None:
        asked = asked_of(visit.state["ResultWriter"], request)
        machine.begin_task(visit, asked, None, writer_of(visit.name))
    elif run.error is not None:
        machine.fail(visit, run.error, after)
    else:
        machine.finish(visit, lambda: run.written_to, after)


def _pending(machine: Machine, visit: Visit) -> Iterator[str | None]:
    """Yield the inputs, as JSON, of the children that have not begun. Raises StatesError."""
    flow = machine.flows.of(visit)
    for index in range(visit.started, len(visit.items)):
        yield written(input_of(flow, visit, index)[1])
