"""The gateway's error type: a message for a person, and an HTTP status."""

from __future__ import annotations


class GatewayError(Exception):
    """An error that the caller can fix.

    Args:
        code: stable, machine-readable word such as ``image-missing``.
        message: one line that names the thing and the fix.
        status: HTTP status of the answer if it happens within a request.
    """

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
