"""The gateway's one error type: what went wrong, for a person, and the HTTP status that says so."""

from __future__ import annotations


class GatewayError(Exception):
    """An error the caller can mend.

    Args:
        code: stable, machine-readable word such as ``image-missing``.
        message: one line that names the thing and the mend.
        status: HTTP status of the answer when it happens within a request.
    """

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
