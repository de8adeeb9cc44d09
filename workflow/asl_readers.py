"""The ItemReader of a distributed Map: a function that reads a file, and what its text holds."""

from __future__ import annotations

from functools import partial
from typing import Any

from chiron.workflow.asl_fields import one_of, path_of_one, template, text, whole
from chiron.workflow.asl_queries import (
    NOT_IN_JSONATA,
    NOT_IN_JSONPATH,
    or_expression,
    query_template,
)
from chiron.workflow.asl_resources import read_by
from chiron.workflow.asl_shapes import Reading, Shape, bad, checked, required, typed
from chiron.workflow.errors import ChironError
from chiron.workflow.model import Task
from chiron.workflow.names import check_task_name, shown
from chiron.wrap.core.statemachine.maps import reader_of
from chiron.wrap.core.statemachine.readers import DELIMITERS

_NOT_READ = {
    "MANIFEST": "have the function read the files that it names, and answer one JSON array",
    "PARQUET": "have the function read the file, and answer a JSON array",
}
_CONFIG_REFUSED = {
    "ItemsPointer": "ItemsPointer: have the function answer the array that it points to",
    "ManifestType": f"a manifest is not read: {_NOT_READ['MANIFEST']}",
    "Transformation": "Transformation: have the function answer the items as they are to be",
}


def reader(value: Any, path: str, reading: Reading, *, shape: Shape) -> dict[str, Any]:
    """An ItemReader, with the name of a function as Resource."""
    kept = checked(value, shape, path, reading)
    if "Resource" in kept:
        kept["Resource"] = read_by(kept, path, reading.functions)
    return kept


def note_reader(name: str, state: dict[str, Any], path: str, reading: Reading) -> None:
    """Note the task that reads the items of the Map `name`. Raises ``duplicate-state``."""
    function = state.get("ItemReader", {}).get("Resource")
    if function is None:
        return
    task = check_task_name(reader_of(name), path)
    if task in reading.names:
        what = f"the ItemReader of {shown(name)} runs as {shown(task)}: rename the state so called"
        raise ChironError("duplicate-state", what, path=path, functions=[task])
    reading.names.add(task)
    reading.tasks.append(Task(task, function, None))


def _config(value: Any, path: str, reading: Reading, *, shape: Shape) -> dict[str, Any]:
    """A ReaderConfig, which has CSVHeaders if the first row has none."""
    kept = checked(value, shape, path, reading)
    if kept.get("InputType") != "CSV":
        for field in ("CSVHeaderLocation", "CSVHeaders", "CSVDelimiter"):
            if field in kept:
                raise bad(f"{path}.{field}", 'needs "InputType": "CSV"')
        return kept
    required(value, "CSVHeaderLocation", path)
    location = kept.pop("CSVHeaderLocation", None)
    if location == "GIVEN":
        required(value, "CSVHeaders", path)
    elif location and "CSVHeaders" in kept:
        raise bad(f"{path}.CSVHeaders", 'needs "CSVHeaderLocation": "GIVEN"')
    return kept


def _input_type(value: Any, path: str, reading: Reading) -> str:
    if isinstance(value, str) and value in _NOT_READ:
        what = f"InputType {value} is not read: {_NOT_READ[value]}"
        raise ChironError("unsupported-field", what, path=path)
    return str(one_of("JSON", "JSONL", "CSV")(value, path, reading))


def _headers(value: Any, path: str, _: Reading) -> list[str]:
    names: list[str] = typed(value, list, path)
    if not names or not all(isinstance(name, str) for name in names):
        raise bad(path, "needs names of columns, each a string")
    return names


_FIELDS = {
    "InputType": _input_type,
    "CSVHeaderLocation": one_of("FIRST_ROW", "GIVEN"),
    "CSVHeaders": _headers,
    "CSVDelimiter": one_of(*DELIMITERS),
}
_PATH_CONFIG = Shape(
    _FIELDS | {"MaxItems": whole(1), "MaxItemsPath": path_of_one},
    at_most_one=(("MaxItems", "MaxItemsPath"),),
    refused=_CONFIG_REFUSED,
)
_QUERY_CONFIG = Shape(
    _FIELDS | {"MaxItems": or_expression(whole(1))}, refused=_CONFIG_REFUSED | NOT_IN_JSONATA
)
#: The check of an ItemReader in each query language.
PATH_READER, QUERY_READER = (
    partial(
        reader,
        shape=Shape(
            {"Resource": text, **given, "ReaderConfig": partial(_config, shape=config)},
            required=("Resource",),
            refused=refused,
        ),
    )
    for given, config, refused in (
        ({"Parameters": template}, _PATH_CONFIG, NOT_IN_JSONPATH),
        ({"Arguments": query_template}, _QUERY_CONFIG, NOT_IN_JSONATA),
    )
)
