"""Checks the ResultWriter of a distributed Map: the form of results, and the writing function."""

from __future__ import annotations

from functools import partial
from typing import Any

from chiron.workflow.asl_fields import one_of, template, text
from chiron.workflow.asl_queries import NOT_IN_JSONATA, NOT_IN_JSONPATH, query_template
from chiron.workflow.asl_resources import called_by, check_place
from chiron.workflow.asl_shapes import Check, Reading, Shape, checked, required
from chiron.workflow.errors import ChironError
from chiron.wrap.core.statemachine.map_run import OUTPUT_TYPES, TRANSFORMATIONS

_CONFIG = Shape({"Transformation": one_of(*TRANSFORMATIONS), "OutputType": one_of(*OUTPUT_TYPES)})


def writer(value: Any, path: str, reading: Reading, *, given: str, check: Check) -> dict[str, Any]:
    """Check a ResultWriter; its Resource becomes the name of the writing function, if any.

    Args:
        given, check: the field with the destination, and its check.
    """
    fields: dict[str, Check] = {"Resource": text, given: check, "WriterConfig": _config}
    refused = NOT_IN_JSONATA if given == "Arguments" else NOT_IN_JSONPATH
    kept = checked(value, Shape(fields, refused=refused), path, reading)
    if not value:
        what = f"Resource and {given}, or WriterConfig, are missing"
        raise ChironError("missing-field", what, path=path)
    if "Resource" in value or given in value:
        for field in ("Resource", given):
            required(value, field, path)
        if isinstance(value[given], dict):
            check_place(value[given], f"{path}.{given}", ("Bucket",), ("Prefix",))
    if "Resource" in kept:
        instead = "writes Body to Key in Bucket, given an object of these three"
        names, actions = reading.functions, ("s3:putObject",)
        return called_by(kept, path, names, actions=actions, instead=instead)
    return kept


def _config(value: Any, path: str, reading: Reading) -> dict[str, Any]:
    kept = checked(value, _CONFIG, path, reading)
    if not value:
        what = f"{' or '.join(_CONFIG.fields)} is missing"
        raise ChironError("missing-field", what, path=path)
    return kept


#: The check of a ResultWriter in each query language.
PATH_WRITER = partial(writer, given="Parameters", check=template)
QUERY_WRITER = partial(writer, given="Arguments", check=query_template)
