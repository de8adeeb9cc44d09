"""Checks the fields of distributed Maps: reading, batching, tolerance and writing."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import Any

from chiron.workflow.asl_fields import one_of, path_of_one, percentage, template, text, whole
from chiron.workflow.asl_queries import (
    NOT_IN_JSONATA,
    NOT_IN_JSONPATH,
    or_expression,
    query_template,
)
from chiron.workflow.asl_readers import PATH_READER, QUERY_READER
from chiron.workflow.asl_resources import called_by, check_place, tasks_of
from chiron.workflow.asl_shapes import Check, Reading, Shape, bad, checked, required, typed
from chiron.workflow.errors import ChironError
from chiron.workflow.model import Task
from chiron.workflow.names import check_task_name, shown
from chiron.wrap.core.statemachine.distributed import LONGEST_LABEL, is_label
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


#: The mode of a distributed Map.
DISTRIBUTED = "DISTRIBUTED"


def check_mode(name: str, state: dict[str, Any], path: str, reading: Reading) -> None:
    """Remove fields that AWS ignores from the inline Map `name`; note others as ``bad-field``."""
    if "ProcessorConfig" not in state.get("ItemProcessor", {}):
        for field in sorted(_TOLERANCE & state.keys()):
            del state[field]
            reading.unused.setdefault(field, []).append(name)
        for field in sorted(_OF_DISTRIBUTED & state.keys()):
            what = f'{field} needs "ProcessorConfig": {{"Mode": "{DISTRIBUTED}"}} in ItemProcessor'
            raise ChironError("bad-field", what, path=f"{path}.{field}")


def note_calls(name: str, state: dict[str, Any], path: str, reading: Reading) -> None:
    """Record the tasks that read and write for the Map `name`. Raises ``duplicate-state``."""
    for task, function in tasks_of(name, state).items():
        check_task_name(task, path)
        if task in reading.names:
            field = task.rpartition(".")[2]
            what = f"the {field} of {shown(name)} runs as {shown(task)}: rename the state so called"
            raise ChironError("duplicate-state", what, path=path, functions=[task])
        reading.names.add(task)
        reading.tasks.append(Task(task, function, None))


def _label(value: Any, path: str, reading: Reading) -> str:
    """Check the label of a Map, which must be unique."""
    label: str = typed(value, str, path)
    if not is_label(label):
        what = f"has to have 1 to {LONGEST_LABEL} characters, no spaces, "
        raise bad(path, what + r'and none of ?*<>{}[]:;,\|^~$#%&`"')
    if label in reading.labels:
        raise bad(path, f"{shown(label)} is the label of another Map too: change one of them")
    reading.labels.add(label)
    return label


def _batcher(value: Any, path: str, reading: Reading, *, shape: Shape) -> dict[str, Any]:
    """Check an ItemBatcher."""
    kept = checked(value, shape, path, reading)
    if not any(field.startswith("Max") for field in kept):
        what = "MaxItemsPerBatch or MaxInputBytesPerBatch is missing"
        raise ChironError("missing-field", what, path=path)
    return kept


_BATCHER = Shape(
    {
        "MaxItemsPerBatch": whole(1),
        "MaxItemsPerBatchPath": path_of_one,
        "MaxInputBytesPerBatch": whole(1),
        "MaxInputBytesPerBatchPath": path_of_one,
        "BatchInput": template,
    },
    at_most_one=(
        ("MaxItemsPerBatch", "MaxItemsPerBatchPath"),
        ("MaxInputBytesPerBatch", "MaxInputBytesPerBatchPath"),
    ),
)
_QUERY_BATCHER = Shape(
    dict.fromkeys(("MaxItemsPerBatch", "MaxInputBytesPerBatch"), or_expression(whole(1)))
    | {"BatchInput": query_template},
    refused=NOT_IN_JSONATA,
)
#: Query language -> the fields of a distributed Map, and groups of mutually exclusive fields.
PATH_FIELDS: dict[str, Check] = {
    "ItemReader": PATH_READER,
    "ItemBatcher": partial(_batcher, shape=_BATCHER),
    "Label": _label,
    "ResultWriter": PATH_WRITER,
    "ToleratedFailureCount": whole(0),
    "ToleratedFailureCountPath": path_of_one,
    "ToleratedFailurePercentage": percentage,
    "ToleratedFailurePercentagePath": path_of_one,
}
QUERY_FIELDS: dict[str, Check] = {
    "ItemReader": QUERY_READER,
    "ItemBatcher": partial(_batcher, shape=_QUERY_BATCHER),
    "Label": _label,
    "ResultWriter": QUERY_WRITER,
    "ToleratedFailureCount": or_expression(whole(0)),
    "ToleratedFailurePercentage": or_expression(percentage),
}
AT_MOST_ONE = tuple(
    (field, f"{field}Path") for field in ("ToleratedFailureCount", "ToleratedFailurePercentage")
)
_TOLERANCE = frozenset(chain.from_iterable(AT_MOST_ONE))
#: The fields that inline Maps lack.
_OF_DISTRIBUTED = PATH_FIELDS.keys() - {"Label"}
