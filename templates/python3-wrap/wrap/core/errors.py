"""The error of a task, as the caller reads it: a code, a sentence and its functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wrap.core.statemachine.errors import LONGEST, failure_of

#: From this HTTP status on, the fault is not the client's.
SERVER_FAULT = 500


class TaskError(Exception):
    """The error of a task, which fails its request.

    Args:
        code: a stable word for programs: ``raised``, ``exited``, ``timeout``, ``process-died``, ...
        message: one line for people.
        function, wrap: of the task; `located` fills them in where they are known.
        caught: the ``Error`` and ``Cause`` for rules of state machines, if `failure_of` does not
            derive them from code and message.
        status: the HTTP status of the answer: 504 after a timeout, else 500; 4xx if the request
            itself was wrong.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        function: str | None = None,
        wrap: str | None = None,
        caught: tuple[str, str] | None = None,
        status: int = 500,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.caught = caught
        self.function = function
        self.wrap = wrap
        self.status = status

    def located(self, function: str | None, wrap: str) -> TaskError:
        """Return the same error, with unknown places filled in."""
        self.function = function if self.function is None else self.function
        self.wrap = wrap if self.wrap is None else self.wrap
        return self

    def as_dict(self, hide: Callable[[str], str]) -> dict[str, Any]:
        """Return the body: code, message, function, wrap; for a fault, error and cause too.

        `error` and `cause` are the ``Error`` and ``Cause`` that nothing caught. `hide` removes
        secrets from texts; lone surrogates are escaped.
        """

        def told(text: str) -> str:
            return hide(text).encode(errors="backslashreplace").decode()

        failure = failure_of(self.code, hide(self.message), self.caught)
        caught = {"error": told(failure.name), "cause": told(failure.cause)[:LONGEST]}
        return {
            "code": self.code,
            "message": told(self.message),
            "function": self.function,
            "wrap": self.wrap,
            **(caught if self.caught or self.status >= SERVER_FAULT else {}),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any], status: int) -> TaskError:
        """Return the error from the fields that `as_dict` of another process or wrap returned."""
        return cls(
            str(fields.get("code", "failed")),
            str(fields.get("message", "")),
            function=fields.get("function"),
            wrap=fields.get("wrap"),
            caught=(fields["error"], fields["cause"]) if "error" in fields else None,
            status=status,
        )


def too_late(what: str) -> TaskError:
    return TaskError("timeout", f"{what} did not answer in time", status=504)


def workflow_failed(name: str, cause: str) -> TaskError:
    """Return the error of a workflow that no task failed; ``timeout`` for States.Timeout."""
    message = ": ".join(filter(None, (name, cause)))
    late = name == "States.Timeout"
    code, status = ("timeout", 504) if late else ("workflow-failed", SERVER_FAULT)
    return TaskError(code, message, caught=(name, cause), status=status)
