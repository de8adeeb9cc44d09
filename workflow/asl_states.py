"""Validates and normalises state machines: each state by the table of its type."""

from __future__ import annotations

from functools import partial
from typing import Any

from chiron.workflow.asl_choices import choices, conditions
from chiron.workflow.asl_fields import (
    anything,
    assigned,
    comment,
    factor,
    one_of,
    parameters,
    path_of_data,
    path_of_one,
    path_or_function,
    path_or_null,
    place_or_null,
    point_in_time,
    template,
    text,
    whole,
)
from chiron.workflow.asl_maps import (
    AT_MOST_ONE,
    DISTRIBUTED,
    PATH_FIELDS,
    QUERY_FIELDS,
    check_mode,
    note_calls,
)
from chiron.workflow.asl_queries import (
    NOT_IN_JSONATA,
    NOT_IN_JSONPATH,
    elements,
    is_jsonata,
    or_expression,
    query_template,
    query_variables,
)
from chiron.workflow.asl_resources import PATH_CREDENTIALS, QUERY_CREDENTIALS, resolved, tasks_of
from chiron.workflow.asl_shapes import (
    DROPPED,
    Check,
    Reading,
    Shape,
    checked,
    checked_each,
    required,
    typed,
)
from chiron.workflow.asl_transitions import WITHOUT_NEXT, check_transitions
from chiron.workflow.errors import ChironError
from chiron.workflow.model import Task
from chiron.workflow.names import check_task_name, shown


def read_machine(document: dict[str, Any], reading: Reading) -> dict[str, Any]:
    """Return the normalised machine: known fields only, functions by name, no synonyms.

    Only states in JSONata keep a QueryLanguage. Tasks and faults are recorded in `reading`.
    """
    more: dict[str, Check] = {
        "Name": _unseen,
        "QueryLanguage": _unseen,
        "TimeoutSeconds": whole(1),
        "Version": comment,
    }
    return _scope(document, "", reading, more)


def _scope(
    holder: Any, path: str, reading: Reading, more: dict[str, Check] | None = None
) -> dict[str, Any]:
    """Normalise the states of a document, a branch or a Map; `more` are its other fields."""
    typed(holder, dict, path)
    shape = Shape(_SCOPE | (more or {}), required=("StartAt", "States"))
    kept = checked(holder, shape, path, reading)
    start, states = holder.get("StartAt"), holder.get("States")
    if isinstance(start, str) and isinstance(states, dict):
        check_transitions(start, states, path, reading.faults)
    return kept


def _states(value: Any, path: str, reading: Reading) -> dict[str, Any]:
    for name in typed(value, dict, path):
        with reading.faults.noting():
            if name in reading.names:
                raise ChironError(
                    "duplicate-state",
                    f"two states are named {shown(name)}: a state's name is its own in a workflow",
                    path=f"{path}.{name}",
                    functions=[name],
                )
            reading.names.add(name)
    kept = {}
    for name, state in value.items():
        with reading.faults.noting():
            kept[name] = _state(state, name, f"{path}.{name}", reading)
    return kept


def _state(state: Any, name: str, path: str, reading: Reading) -> dict[str, Any]:
    if not isinstance(state, dict):
        raise ChironError("bad-field", f"state {shown(name)} has to be an object", path=path)
    kind = typed(required(state, "Type", path), str, f"{path}.Type")
    if kind not in _SHAPES:
        raise ChironError(
            "unsupported-state",
            f"state {shown(name)} is of type {shown(kind)}; there are: {', '.join(_SHAPES)}",
            path=f"{path}.Type",
            functions=[name],
        )
    jsonata = is_jsonata(state, f"{path}.QueryLanguage", reading.jsonata)
    kept = checked(state, (_QUERY_SHAPES if jsonata else _SHAPES)[kind], path, reading)
    with reading.faults.noting():
        if kind not in WITHOUT_NEXT:
            _check_end(state, path)
    if "Credentials" in state:
        reading.unused.setdefault("Credentials", []).append(name)
    if kind == "Task" and "Resource" in kept:
        kept = resolved(kept, name, path, reading)
        for task, function in tasks_of(name, kept).items():
            reading.tasks.append(Task(check_task_name(task, path), function, None))
    _check_heartbeat(kept, path)
    if kind == "Map":
        kept = {_MAP_WORDS.get(field, field): value for field, value in kept.items()}
        with reading.faults.noting():
            check_mode(name, kept, path, reading)
            if "ItemReader" in kept and kept.pop("ItemsPath", None) is not None:
                reading.unused.setdefault("ItemsPath", []).append(name)
            note_calls(name, kept, path, reading)
    if jsonata and not (kind in _ALIKE and kept.keys() <= _HANDING_ON):
        kept["QueryLanguage"] = "JSONata"
    return kept


def _check_heartbeat(state: dict[str, Any], path: str) -> None:
    total, heartbeat = (state.get(field) for field in _LIMITS)
    if isinstance(total, int) and isinstance(heartbeat, int) and heartbeat >= total:
        what = "HeartbeatSeconds has to be less than TimeoutSeconds"
        raise ChironError("bad-field", what, path=f"{path}.HeartbeatSeconds")


def _check_end(state: dict[str, Any], path: str) -> None:
    if "Next" in state:
        if "End" in state:
            raise ChironError("bad-field", "a state has Next or End, not both", path=f"{path}.End")
    elif state.get("End") is not True:
        raise ChironError("missing-field", 'a state needs "Next" or "End": true', path=path)


def _branches(value: Any, path: str, reading: Reading) -> list[dict[str, Any]]:
    if not typed(value, list, path):
        raise ChironError("empty-parallel", "a Parallel needs at least one branch", path=path)
    return checked_each(value, _scope, path, reading)


def _items(value: Any, path: str, reading: Reading) -> dict[str, Any]:
    return _scope(value, path, reading, {"ProcessorConfig": _config})


def _config(value: Any, path: str, reading: Reading) -> object:
    """Check a ProcessorConfig; keep the mode of a distributed Map only."""
    kept = checked(value, _CONFIG, path, reading)
    return {"Mode": DISTRIBUTED} if kept.get("Mode") == DISTRIBUTED else DROPPED


def _unseen(_: Any, __: str, ___: Reading) -> object:
    return DROPPED


def _handlers(value: Any, path: str, reading: Reading, *, shape: Shape) -> list[dict[str, Any]]:
    """Check retriers or catchers: States.ALL must stand alone, in the last one."""
    kept = []
    for index, entry in enumerate(typed(value, list, path)):
        with reading.faults.noting():
            handler = checked(entry, shape, f"{path}[{index}]", reading)
            errors = handler.get("ErrorEquals", [])
            if "States.ALL" in errors and (len(errors) > 1 or index + 1 < len(value)):
                what = "States.ALL has to stand alone, and in the last entry"
                raise ChironError("bad-field", what, path=f"{path}[{index}].ErrorEquals")
            kept.append(handler)
    return kept


def _error_names(value: Any, path: str, _: Reading) -> list[str]:
    names: list[str] = typed(value, list, path)
    if not names or not all(isinstance(name, str) for name in names):
        raise ChironError("bad-field", "ErrorEquals needs at least one name of an error", path=path)
    return names


_RETRIER = Shape(
    {
        "Comment": comment,
        "ErrorEquals": _error_names,
        "IntervalSeconds": whole(1),
        "MaxAttempts": whole(0),
        "BackoffRate": factor,
        "MaxDelaySeconds": whole(1),
        "JitterStrategy": one_of("FULL", "NONE"),
    },
    required=("ErrorEquals",),
)
_CATCHER = Shape(
    {
        "Comment": comment,
        "ErrorEquals": _error_names,
        "ResultPath": place_or_null,
        "Assign": assigned,
        "Next": text,
    },
    required=("ErrorEquals", "Next"),
    refused=NOT_IN_JSONPATH,
)
_QUERY_CATCHER = Shape(
    {
        "Comment": comment,
        "ErrorEquals": _error_names,
        "Output": query_template,
        "Assign": query_variables,
        "Next": text,
    },
    required=("ErrorEquals", "Next"),
    refused=NOT_IN_JSONATA,
)
_SCOPE: dict[str, Check] = {
    "Comment": comment,
    "StartAt": text,
    "States": _states,
}
_STATE: dict[str, Check] = {"Type": text, "Comment": comment, "QueryLanguage": _unseen}
_NEXT: dict[str, Check] = {"Next": text, "End": anything, "Assign": assigned}
_DATA: dict[str, Check] = {"InputPath": path_or_null, "OutputPath": path_or_null}
_MADE: dict[str, Check] = {"Parameters": parameters, "ResultPath": place_or_null}
_RUN: dict[str, Check] = {
    **(_STATE | _NEXT | _DATA | _MADE),
    "ResultSelector": template,
    "Retry": partial(_handlers, shape=_RETRIER),
    "Catch": partial(_handlers, shape=_CATCHER),
}
#: Time limits of a task. Functions send no heartbeats, so HeartbeatSeconds is a limit too.
_LIMITS = ("TimeoutSeconds", "HeartbeatSeconds")
_CONFIG = Shape(
    {"Mode": one_of("INLINE", DISTRIBUTED), "ExecutionType": one_of("STANDARD", "EXPRESS")}
)
_WAITS = ("Seconds", "Timestamp", "SecondsPath", "TimestampPath")
_PATH_SHAPES = {
    "Task": Shape(
        _RUN
        | {"Resource": text, "Credentials": PATH_CREDENTIALS}
        | dict.fromkeys(_LIMITS, whole(1))
        | {f"{field}Path": path_of_one for field in _LIMITS},
        required=("Resource",),
        at_most_one=tuple((field, f"{field}Path") for field in _LIMITS),
    ),
    "Parallel": Shape(_RUN | {"Branches": _branches}, required=("Branches",)),
    "Map": Shape(
        _RUN
        | {
            "ItemProcessor": _items,
            "Iterator": _items,
            "ItemsPath": path_of_data,
            "ItemSelector": template,
            "MaxConcurrency": whole(0),
            "MaxConcurrencyPath": path_of_one,
        }
        | PATH_FIELDS,
        at_most_one=(
            ("MaxConcurrency", "MaxConcurrencyPath"),
            ("ItemSelector", "Parameters"),
            *AT_MOST_ONE,
        ),
        exactly_one=(("ItemProcessor", "Iterator"),),
    ),
    "Choice": Shape(
        _STATE | _DATA | {"Choices": choices, "Default": text, "Assign": assigned},
        required=("Choices",),
    ),
    "Wait": Shape(
        _STATE
        | _NEXT
        | _DATA
        | {
            "Seconds": whole(0),
            "SecondsPath": path_of_one,
            "Timestamp": point_in_time,
            "TimestampPath": path_of_one,
        },
        exactly_one=(_WAITS,),
    ),
    "Pass": Shape(_STATE | _NEXT | _DATA | _MADE | {"Result": anything}),
    "Succeed": Shape(_STATE | _DATA),
    "Fail": Shape(
        _STATE
        | {"Error": text, "ErrorPath": path_or_function}
        | {"Cause": text, "CausePath": path_or_function},
        at_most_one=(("Error", "ErrorPath"), ("Cause", "CausePath")),
    ),
}
_SHAPES = {kind: shape._replace(refused=NOT_IN_JSONPATH) for kind, shape in _PATH_SHAPES.items()}
_QUERY_NEXT: dict[str, Check] = {"Next": text, "End": anything, "Assign": query_variables}
_OUTPUT: dict[str, Check] = {"Output": query_template}
_QUERY_RUN: dict[str, Check] = {
    **(_STATE | _QUERY_NEXT | _OUTPUT),
    "Arguments": query_template,
    "Retry": partial(_handlers, shape=_RETRIER),
    "Catch": partial(_handlers, shape=_QUERY_CATCHER),
}
_QUERY_TABLES = {
    "Task": Shape(
        _QUERY_RUN
        | {"Resource": text, "Credentials": QUERY_CREDENTIALS}
        | dict.fromkeys(_LIMITS, or_expression(whole(1))),
        required=("Resource",),
    ),
    "Parallel": Shape(_QUERY_RUN | {"Branches": _branches}, required=("Branches",)),
    "Map": Shape(
        {field: check for field, check in _QUERY_RUN.items() if field != "Arguments"}
        | {
            "ItemProcessor": _items,
            "Items": or_expression(elements),
            "ItemSelector": query_template,
            "MaxConcurrency": or_expression(whole(0)),
        }
        | QUERY_FIELDS,
        required=("ItemProcessor",),
        at_most_one=(("Items", "ItemReader"),),
    ),
    "Choice": Shape(
        _STATE | _OUTPUT | {"Choices": conditions, "Default": text, "Assign": query_variables},
        required=("Choices",),
    ),
    "Wait": Shape(
        _STATE
        | _QUERY_NEXT
        | _OUTPUT
        | {"Seconds": or_expression(whole(0)), "Timestamp": or_expression(point_in_time)},
        exactly_one=(("Seconds", "Timestamp"),),
    ),
    "Pass": Shape(_STATE | _QUERY_NEXT | _OUTPUT),
    "Succeed": Shape(_STATE | _OUTPUT),
    "Fail": Shape(_STATE | {"Error": or_expression(text), "Cause": or_expression(text)}),
}
_QUERY_SHAPES = {
    kind: shape._replace(refused=NOT_IN_JSONATA) for kind, shape in _QUERY_TABLES.items()
}
#: Type of state -> the fields whose meaning is the same in both languages.
_ALIKE = ("Task", "Parallel", "Pass", "Succeed")
_HANDING_ON = frozenset(("Type", "Resource", "Branches", "Next", "End"))
#: Old name of a Map's field -> new name.
_MAP_WORDS = {"Iterator": "ItemProcessor", "Parameters": "ItemSelector"}
