"""How states fail."""

from __future__ import annotations

import re


class StatesError(Exception):
    """A state that failed.

    Parameters
    ----------
    name
        The Error Name, which Retry and Catch match: ``States.Runtime``, or what a task raised.
    cause
        A sentence for people.
    """

    def __init__(self, name: str, cause: str) -> None:
        super().__init__(f"{name}: {cause}")
        self.name = name
        self.cause = cause


#: What `wrap.task` says of an exception: its class, its message, and where it was raised.
_RAISED = re.compile(r"(?:\w+\.)*(?P<name>\w+)(?:: (?P<cause>.*?))?(?: \([^()]*:\d+\))?", re.DOTALL)


def failure_of(code: str, message: str) -> StatesError:
    """A failed task's error, by the class of the exception where the code is ``raised``."""
    if code == "timeout":
        return StatesError("States.Timeout", message)
    raised = _RAISED.fullmatch(message) if code == "raised" else None
    if raised is None:
        return StatesError(code, message)
    return StatesError(raised["name"], raised["cause"] or "")
