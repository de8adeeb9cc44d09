"""What expressions read besides a state's data: the context object, and variables."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from math import floor
from typing import Any

#: The last second that a timestamp can be of, in the year 9999.
_LAST_SECOND = 253_402_300_799


class Context(dict[str, Any]):
    """The context object in a state, and the variables that the state can see."""

    __slots__ = ("variables",)

    def __init__(self, fields: Mapping[str, Any], variables: Mapping[str, Any]) -> None:
        super().__init__(fields)
        self.variables = variables

    def having(self, **fields: Any) -> Context:
        """The same with these fields."""
        return Context(self | fields, self.variables)


def timestamp(seconds: float) -> str:
    """A time, in seconds since 1970, as the language writes it."""
    second = floor(seconds)
    # The float is not exact: milliseconds are those of the microsecond that is nearest.
    more, milliseconds = divmod(round((seconds - second) * 1_000_000) // 1000, 1000)
    return f"{_second(second + more)}.{milliseconds:03}Z"


@lru_cache(1)
def _second(seconds: int) -> str:
    """A whole second as the language writes it: most events are in the same one as that before."""
    shown = datetime.fromtimestamp(min(seconds, _LAST_SECOND), UTC)
    return shown.isoformat().removesuffix("+00:00")


def execution_context(workflow: str, ident: str, given: Any, now: float) -> dict[str, Any]:
    """The context object of the execution `ident` of a workflow, which began `now` with `given`.

    An execution has no role and is never redriven. `RoleArn` names a role of the workflow in an
    account of zeros, so that expressions that take it apart find its parts.
    """
    execution = {
        "Id": ident,
        "Name": ident,
        "Input": given,
        "RedriveCount": 0,
        "RoleArn": f"arn:aws:iam::{0:012}:role/{workflow}",
        "StartTime": timestamp(now),
    }
    return {"Execution": execution, "StateMachine": {"Id": workflow, "Name": workflow}}
