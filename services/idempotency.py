"""Requests that may be sent again: the client names them, and gets one job however often."""

from __future__ import annotations

import hashlib
import re

from flask import Request

from services.strict_request import ARCHIVE, StrictRequest
from workflow.errors import ChironError

HEADER = "Idempotency-Key"
_CHUNK = 1024 * 1024
_KEY = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)


def idempotency_key(request: Request) -> str | None:
    """The request's Idempotency-Key, None where it has none; ``bad-request``."""
    key = request.headers.get(HEADER)
    if key is not None and not _KEY.fullmatch(key):
        message = f"{HEADER} has to be 1 to 255 visible characters of ASCII"
        raise ChironError("bad-request", message)
    return key


def fingerprint(request: Request) -> str:
    """A digest of what the request asks for: a form is the same however it is delimited."""
    digest = hashlib.sha256(request.path.encode())
    if isinstance(request, StrictRequest) and request.is_form:
        digest.update(request.get_json().encode())
        if (archive := request.files.get(ARCHIVE)) is not None:
            archive.stream.seek(0)
            while chunk := archive.stream.read(_CHUNK):
                digest.update(chunk)
    else:
        digest.update(request.get_data())
    return digest.hexdigest()
