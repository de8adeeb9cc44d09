"""Long jobs on disk: an SQLite database whose content survives any crash of the server."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from chiron.services.problems import Problem
from chiron.workflow.documents import Document
from chiron.workflow.errors import ChironError

#: The most queued jobs; a further job is refused, as it would start only hours later.
QUEUE_LIMIT = 16
#: The most jobs in a list, newest first.
LISTED = 100
#: The most ended jobs that are kept; then the oldest is deleted.
ENDED_LIMIT = 1000
#: The timeout of a wait for another process's transaction, in seconds.
_LOCK_TIMEOUT_S = 10.0
#: The version of the schema: a database of another version is refused.
_VERSION = 3

_SCHEMA = f"""
PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    params TEXT NOT NULL,
    key TEXT UNIQUE,
    fingerprint TEXT NOT NULL,
    request_id TEXT NOT NULL,
    status TEXT NOT NULL,
    starts INTEGER NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0,
    created TEXT NOT NULL,
    started TEXT,
    finished TEXT,
    progress TEXT NOT NULL DEFAULT '[]',
    result TEXT,
    error TEXT
);
PRAGMA user_version = {_VERSION};
"""
_INTERRUPTED = Problem(
    code="interrupted", message="the server ended while the job ran: submit it again"
)
_CANCELLING = "cancelling: what it has deployed is removed first"
_CANCELLED = Problem(code="cancelled", message="the job was cancelled")


Status = Literal["queued", "running", "done", "failed", "cancelled"]


class ProgressLine(Document):
    """A step that a job began, and when."""

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
    """A long job with its progress so far, and its result when it is done.

    A failed job may have a partial result: a profile of the functions that did not fail.
    """

    progress: tuple[ProgressLine, ...] = ()
    result: Any = None
    error: Problem | None = None


@dataclass(frozen=True)
class Submission:
    """A job to queue. Its `key` is the client's, for repeating the request; its `fingerprint` tells
    another request with the same key apart."""

    id: str
    kind: str
    params: dict[str, Any]
    key: str | None = None
    fingerprint: str = ""
    request_id: str = ""


class JobStore:
    """The jobs in the database at `path`, for threads and processes; ``state-unusable``."""

    def __init__(self, path: Path, queue_limit: int = QUEUE_LIMIT) -> None:
        self._path = path
        self._queue_limit = queue_limit
        try:
            _make_private(path)
            with closing(self._connect()) as connection:
                found = connection.execute("PRAGMA user_version").fetchone()[0]
                if found not in (0, _VERSION):
                    raise sqlite3.DatabaseError("another version of chiron wrote it")
                connection.executescript(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            message = f"{path} cannot keep jobs ({error}): mend it, or set CHIRON_HOME"
            raise ChironError("state-unusable", message, status=500) from None

    def submit(self, job: Submission) -> JobSummary:
        """Queue a job, or return the job that was submitted with the same key.

        Raises ``busy`` (429) if the queue is full; ``key-reused`` (409) for another request's key.
        """
        with self._writing() as connection:
            same = connection.execute(
                "SELECT id, fingerprint FROM jobs WHERE key = ?", (job.key,)
            ).fetchone()
            if same and same["fingerprint"] != job.fingerprint:
                message = "another request had this Idempotency-Key: give each its own"
                raise ChironError("key-reused", message, status=409)
            if same:
                return self.get(same["id"])
            waiting = "SELECT count(*) FROM jobs WHERE status = 'queued'"
            if connection.execute(waiting).fetchone()[0] >= self._queue_limit:
                limit = f"{self._queue_limit} jobs are waiting already"
                raise ChironError("busy", f"{limit}: try again when one is done", status=429)
            connection.execute(
                "DELETE FROM jobs WHERE number IN (SELECT number FROM jobs WHERE finished IS NOT"
                " NULL ORDER BY number DESC LIMIT -1 OFFSET ?)",
                (ENDED_LIMIT,),
            )
            connection.execute(
                "INSERT INTO jobs (id, kind, params, key, fingerprint, request_id, status, created)"
                " VALUES (:id, :kind, :params, :key, :fingerprint, :request_id, 'queued', :now)",
                vars(job) | {"params": json.dumps(job.params), "now": _now()},
            )
        return self.get(job.id)

    def claim(self, kinds: Iterable[str]) -> Submission | None:
        """Mark the oldest queued job of these kinds as running; return it, or None."""
        with self._writing() as connection:
            row = connection.execute(
                "SELECT id, kind, params, request_id FROM jobs WHERE status = 'queued'"
                " AND kind IN (SELECT value FROM json_each(?)) ORDER BY number LIMIT 1",
                (json.dumps(list(kinds)),),
            ).fetchone()
            if row is None:
                return None
            connection.execute(
                "UPDATE jobs SET status = 'running', starts = starts + 1, started = ? WHERE id = ?",
                (_now(), row["id"]),
            )
        params = json.loads(row["params"])
        return Submission(row["id"], row["kind"], params, request_id=row["request_id"])

    def add_progress(self, job: str, line: str) -> None:
        with self._writing() as connection:
            _add_progress(connection, job, line)

    def finish(self, job: str, result: Any) -> None:
        """Store the job's result, which must be JSON."""
        with self._writing() as connection:
            _end(connection, job, "done", result, None)

    def fail(self, job: str, problem: Problem, partial: Any = None) -> None:
        """Store a job's error and partial result, if any; a job to cancel is cancelled instead."""
        with self._writing() as connection:
            row = connection.execute("SELECT cancelled FROM jobs WHERE id = ?", (job,)).fetchone()
            if row is not None and row["cancelled"]:
                _end(connection, job, "cancelled", None, _CANCELLED)
            else:
                _end(connection, job, "failed", partial, problem)

    def cancel(self, job: str, kind: str | None = None) -> Job:
        """Cancel a queued job, or mark a running job to be stopped; ``not-found``, ``ended``."""
        self.get(job, kind)
        with self._writing() as connection:
            row = connection.execute(
                "SELECT status, cancelled FROM jobs WHERE id = ?", (job,)
            ).fetchone()
            status: Status = row["status"]
            if status not in ("queued", "running"):
                raise ChironError("ended", f"the job is {status} already", status=409)
            connection.execute("UPDATE jobs SET cancelled = 1 WHERE id = ?", (job,))
            if status == "queued":
                _end(connection, job, "cancelled", None, _CANCELLED)
            elif not row["cancelled"]:
                _add_progress(connection, job, _CANCELLING)
        return self.get(job)

    def recover(self, repeatable: Collection[str]) -> None:
        """Settle the jobs that were running when a server died.

        Jobs of the kinds `repeatable` are queued again after their first start. All others fail, or
        are cancelled if that was asked for.
        """
        with self._writing() as connection:
            left = connection.execute(
                "SELECT id, kind, starts, cancelled FROM jobs WHERE status = 'running'"
            ).fetchall()
            for row in left:
                if row["cancelled"]:
                    _end(connection, row["id"], "cancelled", None, _CANCELLED)
                elif row["kind"] in repeatable and row["starts"] < 2:
                    connection.execute(
                        "UPDATE jobs SET status = 'queued', started = NULL WHERE id = ?",
                        (row["id"],),
                    )
                else:
                    _end(connection, row["id"], "failed", None, _INTERRUPTED)

    def expire(self, age: timedelta) -> None:
        """Delete the jobs that ended longer ago than `age`."""
        before = (datetime.now(UTC) - age).isoformat(timespec="milliseconds")
        with self._writing() as connection:
            connection.execute("DELETE FROM jobs WHERE finished < ?", (before,))

    def get(self, job: str, kind: str | None = None) -> Job:
        """Return the job, which must be of `kind` if given; raises ``not-found`` (404)."""
        with closing(self._connect()) as connection:
            row = connection.execute("SELECT * FROM jobs WHERE id = ?", (job,)).fetchone()
        if row is None or kind not in (None, row["kind"]):
            message = f"there is no {kind or 'job'} with this id: list them for those there are"
            raise ChironError("not-found", message, status=404)
        return Job(
            **_summary(row),
            progress=tuple(ProgressLine(**line) for line in json.loads(row["progress"])),
            result=None if row["result"] is None else json.loads(row["result"]),
            error=None if row["error"] is None else Problem.model_validate_json(row["error"]),
        )

    def newest(self, kind: str | None = None) -> tuple[JobSummary, ...]:
        """Return the newest jobs, of `kind` if given."""
        with closing(self._connect()) as connection:
            rows = connection.execute(
                "SELECT * FROM jobs WHERE ? IN (kind, '') ORDER BY number DESC LIMIT ?",
                (kind or "", LISTED),
            ).fetchall()
        return tuple(JobSummary(**_summary(row)) for row in rows)

    def pending(self) -> set[str]:
        """Return the ids of the queued and running jobs."""
        with closing(self._connect()) as connection:
            rows = connection.execute("SELECT id FROM jobs WHERE status IN ('queued', 'running')")
            return {row["id"] for row in rows}

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with closing(self._connect()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection  # closed without COMMIT, SQLite rolls back
            connection.execute("COMMIT")

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=_LOCK_TIMEOUT_S, isolation_level=None)
        connection.row_factory = sqlite3.Row
        return connection


def _make_private(path: Path) -> None:
    """Make the database private, as jobs are; also a database that existed with wider rights."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.parent.chmod(0o700)
    path.touch(0o600)
    for file in path.parent.glob(f"{path.name}*"):  # SQLite's journals get the database's rights
        file.chmod(0o600)


def _add_progress(connection: sqlite3.Connection, job: str, line: str) -> None:
    connection.execute(
        "UPDATE jobs SET progress = json_insert(progress, '$[#]',"
        " json_object('at', ?, 'line', ?)) WHERE id = ?",
        (_now(), line, job),
    )


def _end(
    connection: sqlite3.Connection, job: str, status: Status, result: Any, error: Problem | None
) -> None:
    connection.execute(
        "UPDATE jobs SET status = ?, finished = ?, result = ?, error = ?, params = '{}'"
        " WHERE id = ?",
        (
            status,
            _now(),
            None if result is None else json.dumps(result),
            None if error is None else error.model_dump_json(),
            job,
        ),
    )


def _summary(row: sqlite3.Row) -> dict[str, Any]:
    fields = ("id", "kind", "status", "created", "started", "finished")
    where = "deployments" if row["kind"] == "deployment" else "jobs"
    return {field: row[field] for field in fields} | {"location": f"/{where}/{row['id']}"}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
