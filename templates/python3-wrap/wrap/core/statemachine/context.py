"""The context object and the variables that expressions read besides a state's data."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from math import floor
from typing import Any

#: The last second of the year 9999, the latest that a timestamp can show.
_LAST_SECOND = 253_402_300_799


class Context(dict[str, Any]):
    """The context object of a state, and the variables visible to it."""

    __slots__ = ("variables",)

    def __init__(self, fields: Mapping[str, Any], variables: Mapping[str, Any]) -> None:
        super().__init__(fields)
        self.variables = variables

    def having(self, **fields: Any) -> Context:
        return Context(self | fields, self.variables)


def timestamp(seconds: float) -> str:
    """Format a time in seconds since 1970 as the language does."""
    second = floor(seconds)
    # The float is inexact: round to microseconds, then truncate to milliseconds.
    more, milliseconds = divmod(round((seconds - second) * 1_000_000) // 1000, 1000)
    return f"{_second(second + more)}.{milliseconds:03}Z"


@lru_cache(1)
def _second(seconds: int) -> str:
    """Format a whole second; cached, as most events fall into the same second as the last."""
    shown = datetime.fromtimestamp(min(seconds, _LAST_SECOND), UTC)
    return shown.isoformat().removesuffix("+00:00")


def execution_context(workflow: str, ident: str, given: Any, now: float) -> dict[str, Any]:
    """Return the context object of the execution `ident`, started at `now` with input `given`.

    An execution has no role and is never redriven. `RoleArn` names a role in the account
    000000000000, so that expressions which split it find its parts.
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
