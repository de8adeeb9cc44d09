"""The events that watchers report of deployed workflows: a bounded file of JSON lines."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from chiron.workflow.documents import Document

#: The size in bytes above which the older half is deleted.
LARGEST = 512 * 1024


class WatchEvent(Document):
    """An event of a watcher: its time (RFC 3339), workflow, kind, and a line for people.

    ``outside`` is how many windows in a row were outside the predicted range at that time.
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
    """The journal in `folder`, created on demand; several programs may write to it at once."""

    folder: Path

    def append(self, event: WatchEvent) -> None:
        """Append the event; raises OSError if that fails."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self._file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        with open(descriptor, "rb+") as file:  # noqa: PTH123  # it is a descriptor
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(event.model_dump_json().encode() + b"\n")
            file.flush()
            if file.tell() > LARGEST:
                file.seek(0)
                lines = file.read().splitlines(keepends=True)
                file.truncate(0)
                file.write(b"".join(lines[len(lines) // 2 :]))

    def events_of(self, gateway: str) -> list[WatchEvent]:
        """Return the events of workflows on the gateway with that URL, newest first."""
        try:
            with self._file.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH)
                lines = file.read().splitlines()
        except OSError:  # no event was written yet
            return []
        found = []
        for line in reversed(lines):
            with suppress(ValidationError):  # another version may use another format
                event = WatchEvent.model_validate_json(line)
                found += [event] if event.gateway == gateway else []
        return found

    @property
    def _file(self) -> Path:
        return self.folder / "watch.jsonl"
