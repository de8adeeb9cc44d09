"""What a long job is, how far it is, what came out; and requests that may be sent again."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Literal

from flask import Request

from services.problems import Problem
from services.strict_request import ARCHIVE, StrictRequest
from workflow.documents import Document
from workflow.errors import ChironError

Status = Literal["queued", "running", "done", "failed", "cancelled"]


class ProgressLine(Document):
    """One thing that a job began to do, and when."""

    at: str
    line: str


class JobSummary(Document):
    """A long job; times are ISO 8601 in UTC."""

    id: str
    kind: str
    status: Status
    location: str
    created: str
    started: str | None = None
    finished: str | None = None


class Job(JobSummary):
    """A long job with what it has done so far, and its result once it is done.

    A job that failed may have a result in part: a profile of the functions that do not fail.
    """

    progress: tuple[ProgressLine, ...] = ()
    result: Any = None
    error: Problem | None = None


@dataclass(frozen=True)
class Submission:
    """A job to be.

    Attributes
    ----------
    key
        The client's name for the request, under which it may be sent again.
    fingerprint
        What the request was, to tell it from another of the same key.
    request_id
        The request's id in the log.
    """

    id: str
    kind: str
    params: dict[str, Any]
    key: str | None = None
    fingerprint: str = ""
    request_id: str = ""


@dataclass(frozen=True)
class Claim:
    """A job that is to be run now."""

    id: str
    kind: str
    params: dict[str, Any]
    request_id: str


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
