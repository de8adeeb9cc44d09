"""How states fail."""

from __future__ import annotations


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


def failure_of(code: str, message: str, caught: tuple[str, str] | None = None) -> StatesError:
    """A failed task's error: `caught` is the class of an exception and what it says."""
    if code == "timeout":
        return StatesError("States.Timeout", message)
    return StatesError(*(caught or (code, message)))
