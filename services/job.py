"""What a long job is: how far it is, what it did, and what came out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from services.problems import Problem
from workflow.documents import Document

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
