"""What watchers told of deployed workflows, kept for others: a bounded file of JSON lines."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from chiron.workflow.documents import Document

#: From so many bytes on, only the newer half stays.
LARGEST = 512 * 1024


class Told(Document):
    """An event of a watcher: when (RFC 3339), of which workflow, its kind, and a line for people.

    ``outside`` is how many windows in a row were out of the predicted range then.
    """

    at: str
    gateway: str
    workflow: str
    planner: str
    event: str
    message: str
    outside: int = 0


@dataclass(frozen=True)
class Journal:
    """What is kept in `folder`, made on demand; several programs may write to it at once."""

    folder: Path

    def note(self, told: Told) -> None:
        """Keep it; raises OSError where that cannot be."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self._file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        with open(descriptor, "rb+") as file:  # noqa: PTH123  # it is a descriptor
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(told.model_dump_json().encode() + b"\n")
            file.flush()
            if file.tell() > LARGEST:
                file.seek(0)
                lines = file.read().splitlines(keepends=True)
                file.truncate(0)
                file.write(b"".join(lines[len(lines) // 2 :]))

    def of(self, gateway: str) -> list[Told]:
        """What was told of workflows on the gateway with that URL, the newest first."""
        try:
            with self._file.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH)
                lines = file.read().splitlines()
        except OSError:  # nothing has been kept
            return []
        found = []
        for line in reversed(lines):
            with suppress(ValidationError):  # another version may have kept something else
                told = Told.model_validate_json(line)
                found += [told] if told.gateway == gateway else []
        return found

    @property
    def _file(self) -> Path:
        return self.folder / "watch.jsonl"
