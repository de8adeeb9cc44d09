"""Checks the ItemReader of a distributed Map: the reading function and the form of its files."""

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
from chiron.wrap.core.statemachine.datasets import ATHENA, INVENTORY, LOADED
from chiron.wrap.core.statemachine.readers import DELIMITERS

#: The InputType that means the ManifestType `INVENTORY`.
_MANIFEST = "MANIFEST"
#: S3 action -> its required and its optional fields.
_PLACES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "s3:getObject": (("Bucket", "Key"), ("VersionId",)),
    "s3:listObjectsV2": (("Bucket",), ("Prefix",)),
}
#: Field of a ReaderConfig that reads several files -> the S3 action that it needs.
_ACTIONS = {"ManifestType": "s3:getObject", "Transformation": "s3:listObjectsV2"}


def reader(
    value: Any, path: str, reading: Reading, *, given: str, check: Check, config: Shape
) -> dict[str, Any]:
    """Check an ItemReader; its Resource becomes the name of the reading function.

    Args:
        given, check: the field with the function's input, and its check.
        config: the shape of the ReaderConfig.
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
    if "Action" in kept:
        if isinstance(fields, dict):
            check_place(fields, f"{path}.{given}", *_PLACES[kept["Action"]])
        read = kept.get("ReaderConfig", {})
        for field, action in _ACTIONS.items():
            if field in read and kept["Action"] != action:
                raise bad(f"{path}.ReaderConfig.{field}", f"needs arn:aws:states:::{action}")
        if kept["Action"] == "s3:listObjectsV2" and "Transformation" not in read:
            listed = {field: read[field] for field in read if field.startswith("MaxItems")}
            kept["ReaderConfig"] = listed  # the other fields are of files
    return kept


def _check_dataset(value: dict[str, Any], kept: dict[str, Any], path: str) -> None:
    """Raise ``missing-field`` or ``bad-field`` for fields that do not fit a manifest or listing."""
    kind, manifest = kept.get("InputType"), kept.get("ManifestType")
    if manifest == INVENTORY and kind is not None:
        raise bad(f"{path}.InputType", f"is CSV for {INVENTORY}, and cannot be set: remove it")
    if manifest == ATHENA or "Transformation" in kept:
        required(value, "InputType", path)
    if manifest == ATHENA and kind in ("JSON", _MANIFEST):
        raise bad(f"{path}.InputType", f"has to be CSV or JSONL for {ATHENA}")
    if "Transformation" in kept and (manifest or kind == _MANIFEST):
        raise bad(f"{path}.Transformation", "is for listings: remove it beside a manifest")


def _config(value: Any, path: str, reading: Reading, *, shape: Shape) -> dict[str, Any]:
    """Check a ReaderConfig; CSVHeaders stay only if the first row has no headers.

    An S3 inventory becomes a ManifestType without InputType.
    """
    kept = checked(value, shape, path, reading)
    _check_dataset(value, kept, path)
    if kept.get("InputType") == _MANIFEST:
        del kept["InputType"]
        kept["ManifestType"] = INVENTORY
    if "ItemsPointer" in kept and kept.get("InputType", "JSON") != "JSON":
        raise bad(f"{path}.ItemsPointer", 'needs "InputType": "JSON"')
    is_inventory = kept.get("ManifestType") == INVENTORY
    if kept.get("InputType") != "CSV" and not is_inventory:
        for field in ("CSVHeaderLocation", "CSVHeaders", "CSVDelimiter"):
            if field in kept:
                raise bad(f"{path}.{field}", 'needs "InputType": "CSV"')
        return kept
    if not is_inventory:
        required(value, "CSVHeaderLocation", path)
    location = kept.pop("CSVHeaderLocation", None)
    if is_inventory and location == "FIRST_ROW":
        what = "cannot be FIRST_ROW for an inventory, whose manifest has the headers: remove it"
        raise bad(f"{path}.CSVHeaderLocation", what)
    if location == "GIVEN":
        required(value, "CSVHeaders", path)
    elif (location or is_inventory) and "CSVHeaders" in kept:
        raise bad(f"{path}.CSVHeaders", 'needs "CSVHeaderLocation": "GIVEN"')
    return kept


def _input_type(value: Any, path: str, reading: Reading) -> str:
    if value == "PARQUET":
        what = "PARQUET is not read: have a function read the file, and answer a JSON array"
        raise ChironError("unsupported-field", what, path=path)
    return str(one_of("JSON", "JSONL", "CSV", _MANIFEST)(value, path, reading))


def _transformation(value: Any, path: str, reading: Reading) -> object:
    one_of("NONE", LOADED)(value, path, reading)
    return value if value == LOADED else DROPPED


def _pointer(value: Any, path: str, _: Reading) -> str:
    """Check a JSON Pointer, which selects the items in a file."""
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
    "ManifestType": one_of(INVENTORY, ATHENA),
    "Transformation": _transformation,
    "CSVHeaderLocation": one_of("FIRST_ROW", "GIVEN"),
    "CSVHeaders": _headers,
    "CSVDelimiter": one_of(*DELIMITERS),
}
#: AWS's limit of items; 0 means all.
_MAX_ITEMS = whole(0, 100_000_000)
_PATH_CONFIG = Shape(
    _FIELDS | {"MaxItems": _MAX_ITEMS, "MaxItemsPath": path_of_one},
    at_most_one=(("MaxItems", "MaxItemsPath"),),
)
_QUERY_CONFIG = Shape(_FIELDS | {"MaxItems": or_expression(_MAX_ITEMS)}, refused=NOT_IN_JSONATA)
#: The check of an ItemReader in each query language.
PATH_READER = partial(reader, given="Parameters", check=template, config=_PATH_CONFIG)
QUERY_READER = partial(reader, given="Arguments", check=query_template, config=_QUERY_CONFIG)
