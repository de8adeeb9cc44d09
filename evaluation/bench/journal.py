"""A journal of rounds on disk: one line a round, so that a stopped run goes on where it was."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from workflow.documents import Document, parse_json, validate

Row = TypeVar("Row", bound=Document)


@dataclass(frozen=True)
class Journal(Generic[Row]):
    """The rows of type `row` in the file `path`."""

    path: Path
    row: type[Row]

    def rows(self) -> list[Row]:
        """What is written so far, none where there is no file; half a last line does not count.

        Raises
        ------
        ChironError
            ``bad-json`` or ``bad-document`` where a whole line is none of `row`.
        """
        if not self.path.exists():
            return []
        lines = self.path.read_bytes().split(b"\n")[:-1]
        return [self._row(line, number) for number, line in enumerate(lines, start=1)]

    def append(self, row: Row) -> None:
        """Add a row; once this returns, no end of the process or the machine takes it away."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            _cut_half_line(file.fileno())
            file.write(row.model_dump_json(exclude_none=True).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _row(self, line: bytes, number: int) -> Row:
        what = f"line {number} of {self.path}"
        return validate(self.row, parse_json(line, what), what)


def _cut_half_line(descriptor: int) -> None:
    """Remove what a process that was killed while it wrote has left after the last line's end."""
    size = os.fstat(descriptor).st_size
    content = os.pread(descriptor, size, 0)
    whole = content.rfind(b"\n") + 1
    if whole < size:
        os.ftruncate(descriptor, whole)
