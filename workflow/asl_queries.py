"""The query language of states, and checks of fields in JSONata."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chiron.workflow.asl_shapes import Check, Reading, bad, typed
from chiron.workflow.asl_variables import check_variable_name
from chiron.workflow.errors import ChironError
from chiron.wrap.core.statemachine.choices import OPERATORS
from chiron.wrap.core.statemachine.expressions import expression_in
from chiron.wrap.core.statemachine.query_functions import QUERY_FUNCTIONS
from chiron.wrap.values.jsonata import check_expression

_JSONPATH, _JSONATA = "JSONPath", "JSONata"


def is_jsonata(holder: Any, path: str, outer: bool) -> bool:
    """Whether `holder`, a document or a state at `path`, is in JSONata.

    Args:
        outer: whether the document is in JSONata, which forbids states in JSONPath.

    Raises ``bad-field``.
    """
    default = _JSONATA if outer else _JSONPATH
    language = holder.get("QueryLanguage", default)
    if language not in (_JSONPATH, _JSONATA):
        raise bad(path, f"has to be {_JSONPATH} or {_JSONATA}")
    if outer and language == _JSONPATH:
        raise bad(path, "cannot be JSONPath in a machine in JSONata: set JSONata in single states")
    return bool(language == _JSONATA)


def uses_jsonata(machine: dict[str, Any] | None) -> bool:
    """Whether a normalised machine or branch has a state in JSONata."""
    return machine is not None and any(
        "QueryLanguage" in state
        or any(map(uses_jsonata, (*state.get("Branches", ()), state.get("ItemProcessor"))))
        for state in machine["States"].values()
    )


def query_template(found: Any, path: str, _: Reading) -> Any:
    """Check a JSON value; strings in ``{% %}`` are expressions."""
    for text in _texts(found):
        _expression(text, path)
    return found


def or_expression(check: Check) -> Check:
    """Return a check that accepts an expression, or any value that `check` accepts."""

    def either(value: Any, path: str, reading: Reading) -> Any:
        if isinstance(value, str) and _expression(value, path) is not None:
            return value
        return check(value, path, reading)

    return either


def query_variables(value: Any, path: str, reading: Reading) -> Any:
    """Check an Assign: variable name -> value; strings may be expressions."""
    for name in typed(value, dict, path):
        check_variable_name(name, f"{path}.{name}")
        for text in _texts(value[name]):
            _expression(text, f"{path}.{name}")
    return value


def truth(value: Any, path: str, _: Reading) -> Any:
    return typed(value, bool, path)


def elements(items: Any, path: str, reading: Reading) -> Any:
    """Check a list or an object of JSON values; strings may be expressions."""
    if not isinstance(items, list | dict):
        raise bad(path, "has to be a list or an object")
    return query_template(items, path, reading)


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _expression(text: str, path: str) -> str | None:
    """Return the expression in `text`; None for a plain string."""
    try:
        expression = expression_in(text)
        if expression is not None:
            check_expression(expression, QUERY_FUNCTIONS)
    except ValueError as error:
        field = path.rpartition(".")[2]
        raise ChironError("bad-field", f"{field}: {error}", path=path) from None
    return expression


def _instead(field: str, use: str, language: str, other: str) -> str:
    return f"{field} is for states in {other}, and the state is written in {language}: use {use}"


#: Field of one language -> the message for a state in the other.
NOT_IN_JSONPATH = {
    field: _instead(field, f'{use}, or set "QueryLanguage": "JSONata"', _JSONPATH, _JSONATA)
    for field, use in {
        "Arguments": "Parameters",
        "Output": "ResultSelector, ResultPath or OutputPath",
        "Items": "ItemsPath",
        "Condition": "Variable and an operator",
    }.items()
}
NOT_IN_JSONATA = {
    field: _instead(field, use, _JSONATA, _JSONPATH)
    for field, use in {
        "InputPath": "$states.input in Arguments",
        "Parameters": "Arguments",
        "ResultSelector": "$states.result in Output",
        "ResultPath": "Assign or Output",
        "OutputPath": "Output",
        "Result": "Output",
        "ItemsPath": "Items",
        **{
            f"{each}Path": f"{each} with {{% %}}"
            for each in (
                *("TimeoutSeconds", "HeartbeatSeconds", "MaxConcurrency"),
                *("MaxItems", "MaxItemsPerBatch", "MaxInputBytesPerBatch"),
                *("ToleratedFailureCount", "ToleratedFailurePercentage"),
                *("Seconds", "Timestamp", "Error", "Cause"),
            )
        },
        **dict.fromkeys(("Variable", "And", "Or", "Not", *OPERATORS), "Condition"),
    }.items()
}
