"""What can go wrong with a task, as the caller reads it: a code, a sentence and its functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wrap.core.statemachine.errors import LONGEST, failure_of

#: From this HTTP status on, the fault is not the client's.
SERVER_FAULT = 500


class TaskError(Exception):
    """A task that failed, and with it the request.

    Args:
        code: a stable word for programs: ``raised``, ``exited``, ``timeout``, ``process-died``, ...
        message: one line for people.
        function, wrap: of the task; `located` fills them in where they are known.
        caught: the ``Error`` and ``Cause`` that rules of state machines see, if `failure_of` does
            not make them of code and message.
        status: the HTTP status of the answer: 504 where time ran out, else 500; 4xx where the
            request itself was wrong.
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
        """The same error, with the places filled in that are not known yet."""
        self.function = function if self.function is None else self.function
        self.wrap = wrap if self.wrap is None else self.wrap
        return self

    def as_dict(self, hide: Callable[[str], str]) -> dict[str, Any]:
        """The body of the answer: code, message, function, wrap; of a fault also error and cause.

        `error` and `cause` are the ``Error`` and ``Cause`` that nothing caught. `hide` takes
        secrets out of texts; lone surrogates are escaped.
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
        """The error that `as_dict` of another process or wrap described."""
        return cls(
            str(fields.get("code", "failed")),
            str(fields.get("message", "")),
            function=fields.get("function"),
            wrap=fields.get("wrap"),
            caught=(fields["error"], fields["cause"]) if "error" in fields else None,
            status=status,
        )


def too_late(what: str) -> TaskError:
    """The timeout error of a task or a wrap."""
    return TaskError("timeout", f"{what} did not answer in time", status=504)


def workflow_failed(name: str, cause: str) -> TaskError:
    """The error of a workflow that ended so, by no task; a ``timeout`` if named so."""
    message = ": ".join(filter(None, (name, cause)))
    late = name == "States.Timeout"
    code, status = ("timeout", 504) if late else ("workflow-failed", SERVER_FAULT)
    return TaskError(code, message, caught=(name, cause), status=status)
