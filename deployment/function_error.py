"""The error of a failed function: as a `ChironError`, and by its name in States Language."""

from __future__ import annotations

import json
from typing import NamedTuple

from chiron.workflow.errors import ChironError
from chiron.wrap.core.statemachine.errors import StatesError, failure_of

#: The most characters of a function's message that an error repeats.
_SHOWN = 300
#: The gateway's status if no replica accepts a further request.
TOO_MANY = 429


class ErrorAnswer(NamedTuple):
    """The content of an error answer of a wrap or the gateway."""

    #: Empty if the answer has no code.
    code: str = ""
    message: str = ""
    #: The function that failed, if the answer names it.
    function: str | None = None
    #: The class and the message of the exception, if a handler raised it.
    exception: tuple[str, str] | None = None


class FunctionFailedError(ChironError):
    """A function failed; ``answer`` is the content of its answer."""

    answer = ErrorAnswer()

    def as_dict(self) -> dict[str, object]:
        """Return the error, with the ``error`` and ``cause`` that Retry and Catch see."""
        failure = self.failure
        return {**super().as_dict(), "error": failure.name, "cause": failure.cause}

    @property
    def failure(self) -> StatesError:
        """The error as Retry and Catch see it.

        Its name is the class of a handler's exception, ``States.Timeout``, another code of a wrap,
        or else ``States.TaskFailed``.
        """
        code, message, _, exception = self.answer
        failure = failure_of(code or "States.TaskFailed", message, exception)
        failure.__cause__ = self
        return failure


def parse_error_answer(body: bytes, status: int) -> ErrorAnswer:
    try:
        answer = json.loads(body)
        exception = (str(answer["error"]), str(answer["cause"])) if "error" in answer else None
        return ErrorAnswer(
            str(answer["code"]), str(answer["message"]), answer.get("function"), exception
        )
    except (ValueError, TypeError, LookupError):
        shown = body.decode(errors="replace").strip() or "no body"
        return ErrorAnswer("timeout" if status == 504 else "", f"status {status}: {shown}")


def function_error(name: str, status: int, body: bytes) -> FunctionFailedError:
    answer = parse_error_answer(body, status)
    code, message, function, _ = answer
    shown = " ".join(message.split())[:_SHOWN]
    error = FunctionFailedError(
        code or "function-failed",
        shown if code == "workflow-failed" else f"function {function or name} failed: {shown}",
        functions=[str(function or name)],
        status=status if status >= 500 or status == TOO_MANY else 502,
    )
    error.answer = answer
    return error


def timeout_error(name: str, timeout_s: float) -> FunctionFailedError:
    message = f"function {name} did not answer within {timeout_s:g} s"
    error = FunctionFailedError("timeout", message, functions=[name], status=504)
    error.answer = ErrorAnswer("timeout", message)
    return error
