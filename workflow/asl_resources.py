"""Resolves the Resources of Tasks and Maps to functions, and checks the Credentials of Tasks."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from functools import partial
from typing import Any

from chiron.workflow.asl_fields import path_or_function, text
from chiron.workflow.asl_queries import NOT_IN_JSONATA, or_expression
from chiron.workflow.asl_shapes import (
    DROPPED,
    Reading,
    Shape,
    bad,
    checked,
    join,
    listed,
    required,
    typed,
)
from chiron.workflow.errors import ChironError
from chiron.workflow.names import FunctionNames, meant, shown
from chiron.wrap.core.statemachine.expressions import expression_in
from chiron.wrap.core.statemachine.maps import reader_of, writer_of
from chiron.wrap.core.statemachine.visits import chosen_task

#: A part of an ARN; it may be a placeholder that contains colons.
_PART = r"(?:[^:$]|\$\{[^{}]*\})*"
_SERVICE = re.compile(
    rf"arn:{_PART}:states:{_PART}:{_PART}:(?P<action>[^.]+)(?P<pattern>\..*)?", re.DOTALL
)

#: The integration with Lambda, whose Parameters name the function.
_INVOKE = "lambda:invoke"
#: Its fields that have no effect here, and all of its fields on AWS.
_WITHOUT_EFFECT = ("ClientContext", "LogType", "Qualifier")
_OF_CALL = ("FunctionName", "InvocationType", "Payload", *_WITHOUT_EFFECT)
#: Unsupported Resources -> the task of a function that replaces them: by action or by pattern.
_KINDS = {
    "activity": ("an activity", "does its work"),
    ".waitForTaskToken": ("a wait for a callback", "answers when the callback came"),
}
_OTHER = ("a service integration", "does the same")

#: Our function that reads and writes an S3-compatible store for a Map.
STORE_FUNCTION = "chiron-s3"
#: Its actions, as Resources name them.
_STORED = ("s3:getObject", "s3:listObjectsV2", "s3:putObject")


def resolved(state: dict[str, Any], name: str, path: str, reading: Reading) -> dict[str, Any]:
    """Return the Task `state`, called `name`, with its function's name as Resource.

    A Task of the Lambda integration names its function in its Parameters, and gets ``"Invoke":
    true``. If it chooses the function at run time, it gets ``"Functions"`` from functions.json.
    functions.json can map any other Resource to a function.

    Raises ``unsupported-resource`` for activities, callbacks and integrations with services.
    """
    resource, functions = state["Resource"], reading.functions
    service = _SERVICE.fullmatch(resource)
    if service and service["action"] == _INVOKE:
        if service["pattern"]:
            raise _refused_call(state, _KINDS.get(service["pattern"], _OTHER), path)
        return state | _invoked(state, name, path, reading)
    if service and not functions.knows(resource):
        what, instead = _kind(service)
        instead = f"{instead}, given its {_input_field(state)}"
        raise _refused(resource, what, instead, f"{path}.Resource")
    return state | {"Resource": functions.function(resource, f"{path}.Resource")}


def replacing(resource: str) -> str:
    """Return what a function does that replaces the integration `resource`; empty for others."""
    service = _SERVICE.fullmatch(resource)
    return _kind(service)[1] if service else ""


def _kind(service: re.Match[str]) -> tuple[str, str]:
    kind = _KINDS.get(service["action"].split(":")[0], _OTHER)
    return _KINDS.get(service["pattern"], kind)


def called_by(
    caller: dict[str, Any],
    path: str,
    functions: FunctionNames,
    *,
    actions: Collection[str],
    instead: str,
) -> dict[str, Any]:
    """Return the ItemReader or ResultWriter `caller` with a function's name as Resource.

    `STORE_FUNCTION` performs the S3 `actions` that functions.json does not map; the caller then
    gets the ``"Action"``.

    Raises ``unsupported-resource`` for any other integration without an entry in functions.json;
    the message names `instead`, the task of a replacing function.
    """
    resource, place = caller["Resource"], f"{path}.Resource"
    if functions.knows(resource) or not _SERVICE.fullmatch(resource):
        return caller | {"Resource": functions.function(resource, place)}
    action = stored_action(resource)
    if action in actions:
        return caller | {"Resource": STORE_FUNCTION, "Action": action}
    raise _refused(resource, _OTHER[0], instead, place)


def stored_action(resource: str) -> str | None:
    """Return the action on an S3-compatible store that a Resource names, or None."""
    service = _SERVICE.fullmatch(resource)
    if service is None or service["pattern"] or service["action"] not in _STORED:
        return None
    return service["action"]


def check_place(
    fields: dict[str, Any], path: str, needed: Collection[str], other: Collection[str] = ()
) -> None:
    """Raise ``missing-field`` or ``unknown-field`` unless `fields` locate objects in a store."""
    names = [name.removesuffix(".$") for name in fields]
    for name in needed:
        if name not in names:
            raise ChironError("missing-field", f"{name} is missing", path=join(path, name))
    known = (*needed, *other)
    for field, name in zip(fields, names, strict=True):
        if name not in known:
            what = f"only {listed(known)} say where: remove {shown(name)}"
            raise ChironError("unknown-field", what, path=join(path, field))


def is_call(resource: str) -> bool:
    """Whether a Task with this Resource names its function in its Parameters."""
    service = _SERVICE.fullmatch(resource)
    return service is not None and service["action"] == _INVOKE


def _invoked(state: dict[str, Any], task: str, path: str, reading: Reading) -> dict[str, Any]:
    field, functions = _input_field(state), reading.functions
    path = f"{path}.{field}"
    given = state.get(field, {})
    if field == "Arguments" and isinstance(given, str) and expression_in(given) is not None:
        return {"Resource": given, "Functions": _chosen(path, functions), "Invoke": True}
    if not isinstance(given, dict):
        raise bad(path, 'has to be an object that names the function: {"FunctionName": ...}')
    parameters = dict(given)
    _check_call(parameters, task, path, reading)
    name = typed(parameters.get("FunctionName", ""), str, f"{path}.FunctionName")
    chosen = "FunctionName.$" if "FunctionName.$" in parameters else "FunctionName"
    is_chosen = chosen.endswith("$") or name.startswith("{%")
    if is_chosen:
        expression = typed(parameters[chosen], str, f"{path}.{chosen}")
        can_be = _chosen(f"{path}.{chosen}", functions)
        return {"Resource": expression, "Functions": can_be, "Invoke": True}
    place = f"{path}.FunctionName"
    required(parameters, "FunctionName", path)
    del parameters["FunctionName"]
    function = functions.function(name, place)
    return {"Resource": function, field: parameters, "Invoke": True}


def _check_call(parameters: dict[str, Any], task: str, path: str, reading: Reading) -> None:
    """Refuse fields that AWS refuses too; note those without effect.

    Raises ``unknown-field``, or ``unsupported-field`` if nobody would wait for the answer.
    """
    for given, value in parameters.items():
        field = given if path.endswith("Arguments") else given.removesuffix(".$")
        place = f"{path}.{given}"
        if field not in _OF_CALL:
            what = f"{shown(given)} is no field of a call; {meant(field, _OF_CALL)}"
            raise ChironError("unknown-field", what, path=place)
        if field == "InvocationType" and (given, value) != (field, "RequestResponse"):
            what = "a task waits for its function's answer: remove InvocationType"
            raise ChironError("unsupported-field", what, path=place)
        if field in _WITHOUT_EFFECT:
            reading.unused.setdefault(field, []).append(task)


def _chosen(path: str, functions: FunctionNames) -> dict[str, str]:
    """Return the functions that a Task can choose at run time: name in the call -> function."""
    if not (can_be := functions.named()):
        what = (
            "a function that is chosen at run time is one of a table: name all that it can be in "
            'functions.json beside workflow.json: {"NAME": "function"}'
        )
        raise ChironError("unsupported-field", what, path=path)
    return {called: functions.function(name, path) for called, name in can_be.items()}


def tasks_of(name: str, state: dict[str, Any]) -> dict[str, str]:
    """Return task -> function for the Task or Map `name`; several if a Task chooses."""
    if state["Type"] == "Map":
        calls = {reader_of(name): "ItemReader", writer_of(name): "ResultWriter"}
        called = {task: state.get(field, {}).get("Resource") for task, field in calls.items()}
        return {task: function for task, function in called.items() if function is not None}
    if "Functions" not in state:
        return {name: state["Resource"]}
    return {chosen_task(name, function): function for function in state["Functions"].values()}


def _input_field(state: dict[str, Any]) -> str:
    return "Arguments" if "Arguments" in state else "Parameters"


def _refused_call(state: dict[str, Any], kind: tuple[str, str], path: str) -> ChironError:
    """Return the error of a call of another kind, with the name of the function to use."""
    field, (what, instead) = _input_field(state), kind
    parameters = state.get(field)
    named = parameters.get("FunctionName") if isinstance(parameters, dict) else None
    function = named if isinstance(named, str) else "NAME"
    return ChironError(
        "unsupported-resource",
        f"{shown(state['Resource'])} is {what}: write a function that {instead}, given the task's "
        f'{field}, and call that function by its name: "Resource": {json.dumps(function)}',
        path=f"{path}.Resource",
        functions=[function],
    )


def _refused(resource: str, what: str, instead: str, path: str) -> ChironError:
    proposal = json.dumps(FunctionNames.proposal([resource], ()), ensure_ascii=False)
    return ChironError(
        "unsupported-resource",
        f"{shown(resource)} is {what}: write a function that {instead}, and name it in "
        f"functions.json: {proposal}",
        path=path,
        functions=[resource],
    )


_ROLE = "RoleArn"
_PATH = Shape({_ROLE: text, f"{_ROLE}.$": path_or_function}, exactly_one=((_ROLE, f"{_ROLE}.$"),))
_QUERY = Shape({_ROLE: or_expression(text)}, required=(_ROLE,), refused=NOT_IN_JSONATA)


def credentials(value: Any, path: str, reading: Reading, *, shape: Shape) -> object:
    """Return the part that is evaluated at run time: ``RoleArnPath``, or ``RoleArn``.

    OpenFaaS functions have no roles. A computed role stays, because its path can fail.
    """
    kept = checked(value, shape, path, reading)
    if f"{_ROLE}.$" in kept:
        return {f"{_ROLE}Path": kept[f"{_ROLE}.$"]}
    is_query = shape is _QUERY and expression_in(kept.get(_ROLE, "")) is not None
    return kept if is_query else DROPPED


#: The check of Credentials in each query language.
PATH_CREDENTIALS = partial(credentials, shape=_PATH)
QUERY_CREDENTIALS = partial(credentials, shape=_QUERY)
