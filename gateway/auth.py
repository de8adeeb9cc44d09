"""HTTP Basic auth for the management API, compared in constant time."""

from __future__ import annotations

import base64
import binascii
import hmac
from dataclasses import dataclass


@dataclass(frozen=True)
class Credentials:
    """The user and password that /system/* asks for."""

    user: str
    password: str

    def admit(self, authorization: str | None) -> bool:
        """Whether an Authorization header carries exactly these."""
        scheme, _, encoded = (authorization or "").partition(" ")
        if scheme.lower() != "basic":
            return False
        try:
            given = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            return False
        return hmac.compare_digest(given, f"{self.user}:{self.password}".encode())
