"""What can go wrong with a task, as the caller reads it: a code, a sentence and its functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Most characters of a cause: the limit of States Language.
LONGEST = 32_768


class TaskError(Exception):
    """A task that failed, and with it the request.

    Parameters
    ----------
    code
        A stable word for programs: ``raised``, ``exited``, ``timeout``, ``process-died``, ...
    message
        One line for people.
    function, wrap
        Of the task; `located` fills them in where they are known.
    caught
        The ``Error`` and ``Cause`` that rules of state machines see, where they are not code and
        message: a class of exceptions, and all that it says up to `LONGEST`.
    status
        The HTTP status of the answer: 504 where time ran out, else 500; 4xx where the request
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
        """The same error, with the places filled in that are not known yet."""
        self.function = function if self.function is None else self.function
        self.wrap = wrap if self.wrap is None else self.wrap
        return self

    def as_dict(self, hide: Callable[[str], str]) -> dict[str, Any]:
        """The body of the answer: code, message, function, wrap, error, cause.

        `hide` takes secrets out of texts; lone surrogates are escaped.
        """

        def told(text: str) -> str:
            return hide(text).encode(errors="backslashreplace").decode()

        error, cause = self.caught or ("", "")
        caught = {"error": told(error), "cause": told(cause)[:LONGEST]} if self.caught else {}
        return {
            "code": self.code,
            "message": told(self.message),
            "function": self.function,
            "wrap": self.wrap,
            **caught,
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
