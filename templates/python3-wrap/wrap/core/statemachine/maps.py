"""Evaluates the fields of a Map: items, batches, inputs of children, limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from .datasets import Dataset, names_files
from .distributed import MOST_CHILDREN, Tolerance, batches
from .errors import StatesError
from .limit import longest, look
from .map_run import Destination
from .path_flow import PathFlow
from .query_flow import QueryFlow
from .readers import FAILED, Pair, items_in, pairs_of
from .values import dump, number_of, parse, shown
from .visits import Visit

Flow = PathFlow | QueryFlow


def reader_of(state: str) -> str:
    return f"{state}.ItemReader"


def writer_of(state: str) -> str:
    return f"{state}.ResultWriter"


def asked_of(caller: Mapping[str, Any], request: Any) -> Any:
    """Return the input of a reading or writing function; of a store's, with its action."""
    if "Action" not in caller:
        return request
    return {"Action": caller["Action"], "Parameters": request}


def origin_of(request: Any) -> str | None:
    """Return ``$$.Map.Item.Source`` of the items that `request` reads, as on AWS."""
    fields = request if isinstance(request, dict) else {}
    bucket, key = fields.get("Bucket"), fields.get("Key")
    if not isinstance(bucket, str):
        return None
    return f"S3://{bucket}/{key}" if isinstance(key, str) else f"S3://{bucket}"


def destination_of(flow: Flow, visit: Visit) -> Destination:
    """Return the destination of a ResultWriter. Raises StatesError."""
    request = flow.request(visit, "ResultWriter")
    fields = {"Prefix": "", **request} if isinstance(request, dict) else {}
    is_known = fields.keys() == {"Bucket", "Prefix"}
    if not is_known or not all(isinstance(each, str) for each in fields.values()):
        message = f"the ResultWriter of state {visit.name!a} has {shown(request)}"
        raise StatesError(flow.unfit, f"{message}: no Bucket, or no Prefix, that is a string")
    return Destination(fields["Bucket"], fields["Prefix"])


def items_of(flow: Flow, visit: Visit) -> Sequence[Any]:
    """Return the items in a Map's input: a list, or also an object if the Map is distributed.

    Raises StatesError.
    """
    items = flow.items(visit)
    is_distributed = "ProcessorConfig" in visit.state["ItemProcessor"]
    if is_distributed and isinstance(items, dict):
        return pairs_of(items)
    if not isinstance(items, list):
        what = "no list and no object" if is_distributed else "no list, which an inline Map needs"
        message = f"the items of state {visit.name!a} are {shown(items)}: {what}"
        raise StatesError(flow.unfit, message)
    return items


def dataset_of(visit: Visit, request: Any) -> Dataset | None:
    """Return the dataset that an ItemReader reads from several files, or None."""
    config = visit.state["ItemReader"].get("ReaderConfig", {})
    if not names_files(config):
        return None
    bucket = request.get("Bucket") if isinstance(request, dict) else None
    return Dataset(config, bucket if isinstance(bucket, str) else "")


def asked_next(visit: Visit) -> dict[str, Any] | None:
    """Return the input of an ItemReader's function for the next file; None after the last."""
    dataset = visit.dataset
    if dataset is None or dataset.place is None:
        return None
    place = dict(zip(("Bucket", "Key"), dataset.place, strict=True))
    if "Action" not in visit.state["ItemReader"]:
        return place
    return {"Action": "s3:getObject", "Parameters": place | {"Held": dataset.size}}


def items_read(flow: Flow, visit: Visit, text: str) -> Sequence[Any]:
    """Return the items in the text of a file, by the Map's ReaderConfig. Raises StatesError."""
    config = visit.state["ItemReader"].get("ReaderConfig", {})
    try:
        most = _whole_number(flow, visit, "MaxItems", config)
    except StatesError as error:
        raise StatesError(FAILED, error.cause) from None  # as on AWS
    if visit.dataset is None:
        return items_in(text, config, most or None)
    visit.dataset.read(text, most or None)
    return visit.dataset


def tolerance_of(flow: Flow, visit: Visit) -> Tolerance:
    """Return the tolerance of a distributed Map; 0 without its fields. Raises StatesError."""
    count = _whole_number(flow, visit, "ToleratedFailureCount", visit.state)
    percentage = _number(flow, visit, "ToleratedFailurePercentage", visit.state, 0, 100)
    if count is None and percentage is None:
        return Tolerance(0, 0)
    return Tolerance(inf if count is None else count, inf if percentage is None else percentage)


def begins_of(flow: Flow, visit: Visit, items: Sequence[Any]) -> tuple[Sequence[Any], float]:
    """Return a Map's children, items or batches, and their concurrency. Raises StatesError."""
    state = visit.state
    visit.source, visit.failed, visit.known = items, 0, {}
    limit = _whole_number(flow, visit, "MaxConcurrency", state) or inf
    if visit.run is not None:
        limit = min(limit, MOST_CHILDREN)
    return (_batched(flow, visit) if "ItemBatcher" in state else items), limit


def input_of(flow: Flow, visit: Visit, index: int) -> tuple[Mapping[str, Any] | None, Any]:
    """Return ``$$.Map`` (None for a batch) and input of a Map's child. Raises StatesError."""
    if "ItemBatcher" in visit.state:
        chosen = [_selected(flow, visit, _item(visit, each)) for each in visit.items[index]]
        return None, _batch(flow, visit, chosen)
    item = _item(visit, index)
    return item, _selected(flow, visit, item)


def is_failed(visit: Visit, index: int) -> bool:
    """Count the failed items of a child; return whether the Map fails."""
    if visit.run is None:
        return True
    visit.failed += len(visit.items[index]) if "ItemBatcher" in visit.state else 1
    return visit.run.tolerance.is_exceeded(visit.failed, len(visit.source))


def _batched(flow: Flow, visit: Visit) -> list[range]:
    """Return the batches of a Map, each as the range of its items' indices."""
    batcher = visit.state["ItemBatcher"]
    most_items = _whole_number(flow, visit, "MaxItemsPerBatch", batcher, 1) or inf
    most_bytes = _whole_number(flow, visit, "MaxInputBytesPerBatch", batcher, 1) or inf
    if most_bytes < inf:
        most_bytes -= _bytes(_batch(flow, visit, []))

    def size_of(index: int) -> int:
        look()
        return _bytes(_selected(flow, visit, _item(visit, index))) + 1

    return batches(len(visit.source), most_items, most_bytes, size_of)


def _batch(flow: Flow, visit: Visit, items: list[Any]) -> dict[str, Any]:
    if "BatchInput" not in visit.state["ItemBatcher"]:
        return {"Items": items}
    return {"BatchInput": flow.batch_input(visit), "Items": items}


def _item(visit: Visit, index: int) -> dict[str, Any]:
    value = visit.source[index]
    item: dict[str, Any] = {"Index": index}
    item |= value._asdict() if isinstance(value, Pair) else {"Value": value}
    origin = visit.origin if visit.dataset is None else visit.dataset.origin(index)
    if visit.run is not None and origin is not None:
        item["Source"] = origin
    return {"Item": item}


def _selected(flow: Flow, visit: Visit, context: Mapping[str, Any]) -> Any:
    """Return the input of an item; `context` is its ``$$.Map``."""
    if "ItemSelector" in visit.state:
        return flow.item(visit, context)
    item = context["Item"]
    return Pair(item["Key"], item["Value"])._asdict() if "Key" in item else item["Value"]


def _whole_number(
    flow: Flow, visit: Visit, field: str, holder: Mapping[str, Any], least: int = 0
) -> int | None:
    """Return a whole number from `least` on in a field or at its path; None without both."""
    found = _number(flow, visit, field, holder, least, inf)
    if found is not None and found != int(found):
        message = f"{field} of state {visit.name!a} is {found}: no whole number"
        raise StatesError(flow.unfit, message)
    return None if found is None else int(found)


def _number(
    flow: Flow, visit: Visit, field: str, holder: Mapping[str, Any], least: int, most: float
) -> float | None:
    """Return a number from `least` to `most` in a field or at its path; None without both."""
    if field not in holder and f"{field}Path" not in holder:
        return None
    value = flow.field(visit, field, None, holder)
    if isinstance(value, str) and f"{field}Path" in holder:
        value = parse(value)  # AWS accepts a number in a string at a path
    found = number_of(value)
    if found is None or not least <= found <= most:
        fits = f"from {least} {'on' if most == inf else f'to {most}'}"
        message = f"{field} of state {visit.name!a} is {shown(value)}: no number {fits}"
        raise StatesError(flow.unfit, message)
    return found


def _bytes(value: Any) -> int:
    """Return the size of `value` in bytes of JSON."""
    return len(dump(value, longest()).encode(errors="surrogatepass"))
