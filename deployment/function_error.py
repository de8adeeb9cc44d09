"""What a function says where it fails: as an error of ours, and as States Language names it."""

from __future__ import annotations

import json
from typing import NamedTuple

from chiron.workflow.errors import ChironError
from chiron.wrap.core.statemachine.errors import StatesError, failure_of

#: Characters of a function's own words that an error repeats.
_SHOWN = 300
#: What a gateway answers if no replica takes a further request.
TOO_MANY = 429


class Told(NamedTuple):
    """What a wrap, or the gateway, answers of an error."""

    #: Empty where there was none.
    code: str = ""
    sentence: str = ""
    #: The function that failed, where the answer has it.
    function: str | None = None
    #: The class of the exception and what it says, where a handler raised it.
    caught: tuple[str, str] | None = None


class FunctionFailedError(ChironError):
    """A function failed; ``told`` is what it answered."""

    told = Told()

    def as_dict(self) -> dict[str, object]:
        """The error with the ``error`` and ``cause`` that Retry and Catch see."""
        failure = self.failure
        return {**super().as_dict(), "error": failure.name, "cause": failure.cause}

    @property
    def failure(self) -> StatesError:
        """The error as Retry and Catch see it.

        Its name is the class of what a handler has raised, ``States.Timeout``, another code that a
        wrap tells, or else ``States.TaskFailed``.
        """
        code, sentence, _, caught = self.told
        failure = failure_of(code or "States.TaskFailed", sentence, caught)
        failure.__cause__ = self
        return failure


def told_by(body: bytes, status: int) -> Told:
    """What `body` tells of the error that a wrap, or the gateway, answered with `status`."""
    try:
        told = json.loads(body)
        caught = (str(told["error"]), str(told["cause"])) if "error" in told else None
        return Told(str(told["code"]), str(told["message"]), told.get("function"), caught)
    except (ValueError, TypeError, LookupError):
        shown = body.decode(errors="replace").strip() or "no body"
        return Told("timeout" if status == 504 else "", f"status {status}: {shown}")


def function_error(name: str, status: int, body: bytes) -> FunctionFailedError:
    """What the function `name` tells of with another status than 200."""
    told = told_by(body, status)
    code, sentence, function, _ = told
    shown = " ".join(sentence.split())[:_SHOWN]
    error = FunctionFailedError(
        code or "function-failed",
        shown if code == "workflow-failed" else f"function {function or name} failed: {shown}",
        functions=[str(function or name)],
        status=status if status >= 500 or status == TOO_MANY else 502,
    )
    error.told = told
    return error


def late(name: str, timeout_s: float) -> FunctionFailedError:
    """The function `name` did not answer in time."""
    message = f"function {name} did not answer within {timeout_s:g} s"
    error = FunctionFailedError("timeout", message, functions=[name], status=504)
    error.told = Told("timeout", message)
    return error
