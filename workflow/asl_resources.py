"""What runs a Task: its Resource, of which a machine keeps the function's name."""

from __future__ import annotations

import json
import re
from typing import Any

from chiron.workflow.asl_shapes import required, typed
from chiron.workflow.errors import ChironError
from chiron.workflow.names import FunctionNames, shown

#: A part of an ARN, which may be a placeholder of a template with colons in it.
_PART = r"(?:[^:$]|\$\{[^{}]*\})*"
_SERVICE = re.compile(
    rf"arn:{_PART}:states:{_PART}:{_PART}:(?P<action>[^.]+)(?P<pattern>\..*)?", re.DOTALL
)


def resolved(state: dict[str, Any], path: str, functions: FunctionNames) -> dict[str, Any]:
    """The Task `state` with its function's name as Resource.

    One that names its function in the Parameters of the integration with Lambda gets
    ``"Invoke": true``. What functions.json names is a function, whatever it is elsewhere.

    Raises ``unsupported-resource`` for activities, callbacks and integrations with services.
    """
    resource = state["Resource"]
    service = None if functions.knows(resource) else _SERVICE.fullmatch(resource)
    if service:
        action, pattern = service["action"], service["pattern"]
        if action.startswith("activity:"):
            raise _refused(resource, "an activity", "does its work", path)
        if pattern == ".waitForTaskToken":
            raise _refused(resource, "a wait for a callback", "answers when that came", path)
        if action != "lambda:invoke" or pattern:
            raise _refused(resource, "a service integration", "does the same", path)
        return state | _invoked(state, path, functions)
    return state | {"Resource": functions.function(resource, f"{path}.Resource")}


def _invoked(state: dict[str, Any], path: str, functions: FunctionNames) -> dict[str, Any]:
    field = "Arguments" if "Arguments" in state else "Parameters"
    path = f"{path}.{field}"
    parameters = dict(typed(state.get(field, {}), dict, path))
    name = typed(parameters.get("FunctionName", ""), str, f"{path}.FunctionName")
    if "FunctionName.$" in parameters or name.startswith("{%"):
        chosen = "FunctionName.$" if "FunctionName.$" in parameters else "FunctionName"
        what = "a function that is chosen at run time is not supported: name it, or use a Choice"
        raise ChironError("unsupported-field", what, path=f"{path}.{chosen}")
    if parameters.get("InvocationType", "RequestResponse") != "RequestResponse":
        what = "a task waits for its function's answer: remove InvocationType"
        raise ChironError("unsupported-field", what, path=f"{path}.InvocationType")
    place = f"{path}.FunctionName"
    required(parameters, "FunctionName", path)
    del parameters["FunctionName"]
    function = functions.function(name, place)
    return {"Resource": function, field: parameters, "Invoke": True}


def _refused(resource: str, what: str, instead: str, path: str) -> ChironError:
    proposal = json.dumps(FunctionNames.proposal([resource], ()), ensure_ascii=False)
    return ChironError(
        "unsupported-resource",
        f"{shown(resource)} is {what}: write a function that {instead}, given the task's "
        f"Parameters, and name it in functions.json: {proposal}",
        path=f"{path}.Resource",
        functions=[resource],
    )
