"""Long jobs on disk: an SQLite database that a restart, however sudden, finds as it was left."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from services.problems import Problem
from workflow.documents import Document
from workflow.errors import ChironError

Status = Literal["queued", "running", "done", "failed"]

#: Jobs that may wait at once; one more is refused, since its turn would come hours later.
QUEUE_LIMIT = 16
#: Jobs that a list shows, the newest first.
LISTED = 100
#: How long one process waits for another's transaction, in seconds.
_LOCK_TIMEOUT_S = 10.0

_SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    params TEXT NOT NULL,
    status TEXT NOT NULL,
    created TEXT NOT NULL,
    started TEXT,
    finished TEXT,
    result TEXT,
    error TEXT
);
CREATE TABLE IF NOT EXISTS progress (job TEXT NOT NULL, at TEXT NOT NULL, line TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS progress_of_job ON progress (job);
"""
_INTERRUPTED = Problem(
    code="interrupted",
    message="the server ended while the job ran: submit it again",
)


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
    """A long job with what it has done so far, and its result once it is done."""

    progress: tuple[ProgressLine, ...] = ()
    result: Any = None
    error: Problem | None = None


@dataclass(frozen=True)
class Claim:
    """A job that is to be run now."""

    id: str
    kind: str
    params: dict[str, Any]


class JobStore:
    """The jobs in the database at `path`; safe to share between threads and processes.

    Raises
    ------
    ChironError
        ``state-unusable`` where the database cannot be created or read.
    """

    def __init__(self, path: Path, queue_limit: int = QUEUE_LIMIT) -> None:
        self._path = path
        self._queue_limit = queue_limit
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with closing(self._connect()) as connection:
                connection.executescript(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            message = f"{path} cannot keep jobs ({error}): mend it, or set CHIRON_HOME"
            raise ChironError("state-unusable", message, status=500) from None

    def submit(self, job: str, kind: str, params: Mapping[str, Any]) -> JobSummary:
        """Queue a job under the new id `job`; ``busy`` (429) where the queue is full."""
        with self._writing() as connection:
            waiting = "SELECT count(*) FROM jobs WHERE status = 'queued'"
            if connection.execute(waiting).fetchone()[0] >= self._queue_limit:
                raise ChironError(
                    "busy",
                    f"{self._queue_limit} jobs are waiting already: try again when one is done",
                    status=429,
                )
            connection.execute(
                "INSERT INTO jobs (id, kind, params, status, created)"
                " VALUES (?, ?, ?, 'queued', ?)",
                (job, kind, json.dumps(params), _now()),
            )
        return self.get(job)

    def claim(self, kinds: Iterable[str]) -> Claim | None:
        """The oldest queued job of these kinds, from now on running; None where there is none."""
        with self._writing() as connection:
            row = connection.execute(
                "SELECT id, kind, params FROM jobs WHERE status = 'queued'"
                " AND kind IN (SELECT value FROM json_each(?)) ORDER BY number LIMIT 1",
                (json.dumps(list(kinds)),),
            ).fetchone()
            if row is None:
                return None
            connection.execute(
                "UPDATE jobs SET status = 'running', started = ? WHERE id = ?", (_now(), row["id"])
            )
        return Claim(row["id"], row["kind"], json.loads(row["params"]))

    def add_progress(self, job: str, line: str) -> None:
        """Note that the job does what `line` says."""
        with self._writing() as connection:
            connection.execute("INSERT INTO progress VALUES (?, ?, ?)", (job, _now(), line))

    def finish(self, job: str, result: Any) -> None:
        """Keep the job's result, which has to be JSON."""
        with self._writing() as connection:
            connection.execute(
                "UPDATE jobs SET status = 'done', finished = ?, result = ? WHERE id = ?",
                (_now(), json.dumps(result), job),
            )

    def fail(self, job: str, problem: Problem) -> None:
        """Keep why the job has no result."""
        with self._writing() as connection:
            connection.execute(
                "UPDATE jobs SET status = 'failed', finished = ?, error = ? WHERE id = ?",
                (_now(), problem.model_dump_json(), job),
            )

    def interrupt_running(self) -> None:
        """Fail the jobs that a server left running when it died: nobody works on them any more."""
        with self._writing() as connection:
            connection.execute(
                "UPDATE jobs SET status = 'failed', finished = ?, error = ?"
                " WHERE status = 'running'",
                (_now(), _INTERRUPTED.model_dump_json()),
            )

    def get(self, job: str, kind: str | None = None) -> Job:
        """The job, which has to be of `kind` if one is given; ``not-found`` (404)."""
        with self._reading() as connection:
            row = connection.execute("SELECT * FROM jobs WHERE id = ?", (job,)).fetchone()
            lines = connection.execute(
                "SELECT at, line FROM progress WHERE job = ? ORDER BY rowid", (job,)
            ).fetchall()
        if row is None or kind not in (None, row["kind"]):
            message = f"there is no {kind or 'job'} with this id: list them for those there are"
            raise ChironError("not-found", message, status=404)
        return Job(
            **_summary(row),
            progress=tuple(ProgressLine(at=line["at"], line=line["line"]) for line in lines),
            result=None if row["result"] is None else json.loads(row["result"]),
            error=None if row["error"] is None else Problem.model_validate_json(row["error"]),
        )

    def newest(self, kind: str | None = None) -> tuple[JobSummary, ...]:
        """The newest jobs, of `kind` if one is given."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT * FROM jobs WHERE ? IN (kind, '') ORDER BY number DESC LIMIT ?",
                (kind or "", LISTED),
            ).fetchall()
        return tuple(JobSummary(**_summary(row)) for row in rows)

    def ids(self) -> set[str]:
        """The ids of all jobs."""
        with self._reading() as connection:
            return {row["id"] for row in connection.execute("SELECT id FROM jobs")}

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with closing(self._connect()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection  # closed without COMMIT, SQLite rolls back
            connection.execute("COMMIT")

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """One state of the database for several queries; waits for no writer."""
        with closing(self._connect()) as connection:
            connection.execute("BEGIN")
            yield connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=_LOCK_TIMEOUT_S, isolation_level=None)
        connection.row_factory = sqlite3.Row
        return connection


def _summary(row: sqlite3.Row) -> dict[str, Any]:
    fields = ("id", "kind", "status", "created", "started", "finished")
    where = "deployments" if row["kind"] == "deployment" else "jobs"
    return {field: row[field] for field in fields} | {"location": f"/{where}/{row['id']}"}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
