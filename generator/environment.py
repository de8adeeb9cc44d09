"""One environment for the functions of a wrap, which share a process and so its variables."""

from __future__ import annotations

from collections.abc import Mapping

from openfaas.handlers import Style
from workflow.errors import ChironError

#: What python3-flask looks at to choose between text and bytes for its handler.
_RAW_BODY = "RAW_BODY"


def merge_environments(
    wrap: str,
    functions: Mapping[str, Mapping[str, str]],
    styles: Mapping[str, Style],
    own: Mapping[str, str],
) -> dict[str, str]:
    """The union of the variables of `functions` (name -> variables), below the wrap's `own`.

    Raises
    ------
    ChironError
        ``environment-conflict`` where two functions need different values of one variable. One
        that does not set a variable takes any, but for RAW_BODY: not to set it asks for text.
    """
    merged: dict[str, str] = {}
    given_by: dict[str, str] = {}
    for name, variables in functions.items():
        for variable, value in variables.items():
            if merged.get(variable, value) != value and variable not in own:
                raise _conflict(wrap, variable, given_by[variable], name)
            merged[variable], given_by[variable] = value, name
    raw = {n: _is_raw(v) for n, v in functions.items() if styles[n] == "flask"}
    if len(set(raw.values())) > 1:
        first, second = (next(n for n, wants in raw.items() if wants is w) for w in (True, False))
        raise _conflict(wrap, _RAW_BODY, first, second)
    return merged | dict(own)


def _is_raw(variables: Mapping[str, str]) -> bool:
    return variables.get(_RAW_BODY, "").lower() in ("1", "true")


def _conflict(wrap: str, variable: str, first: str, second: str) -> ChironError:
    return ChironError(
        "environment-conflict",
        f"{first} and {second} want different values of {variable} in wrap {wrap}: "
        "give both the same, or keep them in different wraps",
        functions=(first, second),
    )
