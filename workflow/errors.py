"""The one error type that users meet: a code, a sentence, where it is, and whom it concerns."""

from __future__ import annotations

from collections.abc import Iterable


class ChironError(Exception):
    """Something that a user can mend, said in one line that names the thing and the mend.

    Parameters
    ----------
    code
        A stable word for programs, such as ``cycle``.
    message
        One line for people: what is wrong and what to do about it.
    path
        Where in the artefact it stands, such as ``States.B.Next``.
    functions
        The functions (or tasks) concerned.
    status
        The HTTP status with which a service answers; the command line exits with 2 below 500
        and with 1 from 500 on.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        path: str | None = None,
        functions: Iterable[str] = (),
        status: int = 400,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.path = path
        self.functions = tuple(functions)
        self.status = status

    def as_dict(self) -> dict[str, object]:
        """The error as the services send it and ``--json`` prints it."""
        return {
            "code": self.code,
            "message": self.message,
            "path": self.path,
            "functions": list(self.functions),
        }

    def __str__(self) -> str:
        return f"{self.message} (at {self.path})" if self.path else self.message
