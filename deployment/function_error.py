"""What a function says where it fails: as an error of ours, and as States Language names it."""

from __future__ import annotations

import json

from workflow.errors import ChironError
from workflow.states.errors import StatesError, failure_of

#: Characters of a function's own words that an error repeats.
_SHOWN = 300


class FunctionFailedError(ChironError):
    """A function failed; ``told`` is what it said, a code and a sentence.

    The code is empty where it told none.
    """

    told = ("", "")

    @property
    def failure(self) -> StatesError:
        """The error as Retry and Catch see it.

        Its name is the class of what a handler has raised, ``States.Timeout``, another code that a
        wrap tells, or else ``States.TaskFailed``.
        """
        code, sentence = self.told
        failure = failure_of(code or "States.TaskFailed", sentence)
        failure.__cause__ = self
        return failure


def told_by(body: bytes, status: int) -> tuple[str, str, str | None]:
    """Code, sentence and function of an error that a wrap, or the gateway, answered."""
    try:
        told = json.loads(body)
        return str(told["code"]), str(told["message"]), told.get("function")
    except (ValueError, TypeError, LookupError):
        shown = body.decode(errors="replace").strip() or "no body"
        return "timeout" if status == 504 else "", f"status {status}: {shown}", None


def function_error(name: str, status: int, body: bytes) -> FunctionFailedError:
    """What the function `name` tells of with another status than 200."""
    code, sentence, function = told_by(body, status)
    shown = " ".join(sentence.split())[:_SHOWN]
    error = FunctionFailedError(
        code or "function-failed",
        shown if code == "workflow-failed" else f"function {function or name} failed: {shown}",
        functions=[str(function or name)],
        status=status if status >= 500 else 502,
    )
    error.told = code, sentence
    return error


def late(name: str, timeout_s: float) -> FunctionFailedError:
    """The function `name` did not answer in time."""
    message = f"function {name} did not answer within {timeout_s:g} s"
    error = FunctionFailedError("timeout", message, functions=[name], status=504)
    error.told = "timeout", message
    return error
