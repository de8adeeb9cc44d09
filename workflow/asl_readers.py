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
from chiron.workflow.asl_resources import called_by, check_place
from chiron.workflow.asl_shapes import DROPPED, Check, Reading, Shape, bad, checked, required, typed
from chiron.workflow.errors import ChironError
from chiron.wrap.core.statemachine.readers import DELIMITERS

_NOT_READ = {
    "MANIFEST": "have the function read the files that it names, and answer one JSON array",
    "PARQUET": "have the function read the file, and answer a JSON array",
}
_CONFIG_REFUSED = {"ManifestType": f"a manifest is not read: {_NOT_READ['MANIFEST']}"}
#: What reads S3 -> the fields that say where, and those that need not be there.
_PLACES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "s3:getObject": (("Bucket", "Key"), ("VersionId",)),
    "s3:listObjectsV2": (("Bucket",), ("Prefix",)),
}


def reader(
    value: Any, path: str, reading: Reading, *, given: str, check: Check, config: Shape
) -> dict[str, Any]:
    """An ItemReader, with the name of a function as Resource.

    Args:
        given, check: the field of what the function gets, and its check.
        config: the ReaderConfig.
    """
    fields: dict[str, Check] = {"Resource": text, given: check}
    fields["ReaderConfig"] = partial(_config, shape=config)
    refused = NOT_IN_JSONATA if given == "Arguments" else NOT_IN_JSONPATH
    kept = checked(value, Shape(fields, ("Resource",), refused=refused), path, reading)
    if "Resource" in kept:
        instead = f"answers the content of the file, given its {given}"
        names = reading.functions
        kept = called_by(kept, path, names, actions=_PLACES.keys(), instead=instead)
    fields = kept.get(given, {})
    if "Action" in kept and isinstance(fields, dict):
        check_place(fields, f"{path}.{given}", *_PLACES[kept["Action"]])
    return kept


def _config(value: Any, path: str, reading: Reading, *, shape: Shape) -> dict[str, Any]:
    """A ReaderConfig, which has CSVHeaders if the first row has none."""
    kept = checked(value, shape, path, reading)
    if "ItemsPointer" in kept and kept.get("InputType", "JSON") != "JSON":
        raise bad(f"{path}.ItemsPointer", 'needs "InputType": "JSON"')
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


def _transformation(value: Any, path: str, reading: Reading) -> object:
    if value == "LOAD_AND_FLATTEN":
        what = "have the function read the objects that it lists, and answer their items"
        raise ChironError("unsupported-field", f"LOAD_AND_FLATTEN: {what}", path=path)
    one_of("NONE")(value, path, reading)
    return DROPPED


def _pointer(value: Any, path: str, _: Reading) -> str:
    """A JSON Pointer, which selects the items in a file."""
    pointer: str = typed(value, str, path)
    if not pointer.startswith("/"):
        raise bad(path, "has to be a JSON Pointer, like /orders/open")
    return pointer


def _headers(value: Any, path: str, _: Reading) -> list[str]:
    names: list[str] = typed(value, list, path)
    if not names or not all(isinstance(name, str) for name in names):
        raise bad(path, "needs names of columns, each a string")
    return names


_FIELDS = {
    "InputType": _input_type,
    "ItemsPointer": _pointer,
    "Transformation": _transformation,
    "CSVHeaderLocation": one_of("FIRST_ROW", "GIVEN"),
    "CSVHeaders": _headers,
    "CSVDelimiter": one_of(*DELIMITERS),
}
#: AWS reads at most so many items; 0 stands for all.
_MAX_ITEMS = whole(0, 100_000_000)
_PATH_CONFIG = Shape(
    _FIELDS | {"MaxItems": _MAX_ITEMS, "MaxItemsPath": path_of_one},
    at_most_one=(("MaxItems", "MaxItemsPath"),),
    refused=_CONFIG_REFUSED,
)
_QUERY_CONFIG = Shape(
    _FIELDS | {"MaxItems": or_expression(_MAX_ITEMS)}, refused=_CONFIG_REFUSED | NOT_IN_JSONATA
)
#: The check of an ItemReader in each query language.
PATH_READER = partial(reader, given="Parameters", check=template, config=_PATH_CONFIG)
QUERY_READER = partial(reader, given="Arguments", check=query_template, config=_QUERY_CONFIG)
