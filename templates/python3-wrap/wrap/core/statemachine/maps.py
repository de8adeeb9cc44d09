"""What a Map begins: its items, or batches of them, and the input of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from .distributed import MOST_CHILDREN, batches, tolerance
from .errors import StatesError
from .path_flow import PathFlow
from .query_flow import QueryFlow
from .readers import Items, items_in
from .times import shown
from .values import dump, number_of
from .visits import Visit

Flow = PathFlow | QueryFlow


def reader_of(state: str) -> str:
    """The task that runs the function of a Map's ItemReader."""
    return f"{state}.ItemReader"


def items_of(flow: Flow, visit: Visit) -> list[Any]:
    """The items in the input of a Map. Raises StatesError."""
    items = flow.items(visit)
    if not isinstance(items, list):
        message = f"the items of state {visit.name!a} are {shown(items)}: no list"
        raise StatesError(flow.unfit, message)
    return items


def items_read(flow: Flow, visit: Visit, text: str) -> Items:
    """The items of a file with this text, by the ItemReader of a Map. Raises StatesError."""
    config = visit.state["ItemReader"].get("ReaderConfig", {})
    most = _whole_number(flow, visit, "MaxItems", config)
    if most == 0:
        raise StatesError(flow.unfit, f"MaxItems of state {visit.name!a} is 0: no number from 1 on")
    return items_in(text, config, most)


def begins_of(flow: Flow, visit: Visit, items: Sequence[Any]) -> tuple[Sequence[Any], float]:
    """What a Map begins with, items or batches, and how many run at once. Raises StatesError."""
    state = visit.state
    visit.source, visit.failed, visit.known = items, 0, {}
    limit = _whole_number(flow, visit, "MaxConcurrency", state) or inf
    if "ProcessorConfig" in state["ItemProcessor"]:
        limit = min(limit, MOST_CHILDREN)
        visit.tolerance = tolerance(
            _whole_number(flow, visit, "ToleratedFailureCount", state),
            _number(flow, visit, "ToleratedFailurePercentage", state, 100),
        )
    return (_batched(flow, visit) if "ItemBatcher" in state else items), limit


def input_of(flow: Flow, visit: Visit, index: int) -> tuple[Mapping[str, Any] | None, Any]:
    """``$$.Map`` of what a Map begins, None for a batch, and its input. Raises StatesError."""
    if "ItemBatcher" in visit.state:
        chosen = [flow.item(visit, _item(visit, each)) for each in visit.items[index]]
        return None, _batch(flow, visit, chosen)
    item = _item(visit, index)
    return item, flow.item(visit, item)


def is_failed(visit: Visit, index: int) -> bool:
    """Count what failed of a Map, all items of a batch; whether the Map fails by that."""
    if visit.tolerance is None:
        return True
    visit.failed += len(visit.items[index]) if "ItemBatcher" in visit.state else 1
    return visit.tolerance.is_exceeded(visit.failed, len(visit.source))


def _batched(flow: Flow, visit: Visit) -> list[range]:
    """The items of each batch of a Map, by their indices."""
    batcher = visit.state["ItemBatcher"]
    most_items = _whole_number(flow, visit, "MaxItemsPerBatch", batcher) or inf
    most_bytes = _whole_number(flow, visit, "MaxInputBytesPerBatch", batcher) or inf
    if most_bytes < inf:
        most_bytes -= _bytes(_batch(flow, visit, []))
    return batches(
        len(visit.source),
        most_items,
        most_bytes,
        lambda index: _bytes(flow.item(visit, _item(visit, index))) + 1,
    )


def _batch(flow: Flow, visit: Visit, items: list[Any]) -> dict[str, Any]:
    """The input of a batch of `items`."""
    if "BatchInput" not in visit.state["ItemBatcher"]:
        return {"Items": items}
    return {"BatchInput": flow.batch_input(visit), "Items": items}


def _item(visit: Visit, index: int) -> dict[str, Any]:
    return {"Item": {"Index": index, "Value": visit.source[index]}}


def _whole_number(flow: Flow, visit: Visit, field: str, holder: Mapping[str, Any]) -> int | None:
    """The whole number of a field, or that its path finds; None without either."""
    found = _number(flow, visit, field, holder, inf)
    if found is not None and found != int(found):
        message = f"{field} of state {visit.name!a} is {found}: no whole number"
        raise StatesError(flow.unfit, message)
    return None if found is None else int(found)


def _number(
    flow: Flow, visit: Visit, field: str, holder: Mapping[str, Any], most: float
) -> float | None:
    """The number from 0 to `most` of a field, or that its path finds; None without either."""
    if field not in holder and f"{field}Path" not in holder:
        return None
    value = flow.field(visit, field, None, holder)
    found = number_of(value)
    if found is None or not 0 <= found <= most:
        message = f"{field} of state {visit.name!a} is {shown(value)}: no number from 0 on"
        raise StatesError(flow.unfit, message)
    return found


def _bytes(value: Any) -> int:
    """The bytes of `value` as JSON."""
    return len(dump(value).encode(errors="surrogatepass"))
