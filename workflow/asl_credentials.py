"""Checks the Credentials of a Task: a role that AWS assumes; OpenFaaS functions have no roles.

A role that is computed at run time stays in the machine, because its path can fail.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from chiron.workflow.asl_fields import path_or_function, text
from chiron.workflow.asl_queries import NOT_IN_JSONATA, or_expression
from chiron.workflow.asl_shapes import DROPPED, Reading, Shape, checked
from chiron.wrap.core.statemachine.expressions import expression_in

_ROLE = "RoleArn"
_PATH = Shape({_ROLE: text, f"{_ROLE}.$": path_or_function}, exactly_one=((_ROLE, f"{_ROLE}.$"),))
_QUERY = Shape({_ROLE: or_expression(text)}, required=(_ROLE,), refused=NOT_IN_JSONATA)


def credentials(value: Any, path: str, reading: Reading, *, shape: Shape) -> object:
    """Return the part that is evaluated at run time: ``RoleArnPath``, or ``RoleArn``."""
    kept = checked(value, shape, path, reading)
    if f"{_ROLE}.$" in kept:
        return {f"{_ROLE}Path": kept[f"{_ROLE}.$"]}
    is_query = shape is _QUERY and expression_in(kept.get(_ROLE, "")) is not None
    return kept if is_query else DROPPED


#: The check of Credentials in each query language.
PATH_CREDENTIALS = partial(credentials, shape=_PATH)
QUERY_CREDENTIALS = partial(credentials, shape=_QUERY)
