"""Results of other verbs in the same folder: whatever has a JSON or a CSV of its own."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.bench.settings import RUN_FILE
from evaluation.bench.setup import PLATFORM_FILE
from evaluation.report.tables import Table, number

#: Rows of a table that a page shows; the file has all.
MOST_ROWS = 40
#: Characters of a cell that a page shows.
_LONGEST = 80
_NO_RESULTS = (RUN_FILE, PLATFORM_FILE)


def extra_tables(out: Path, known: Sequence[str]) -> dict[str, list[Table]]:
    """Name -> tables of every result in `out` that is not of the results `known`.

    Every list of objects in a JSON is a table of their plain values; a CSV is one where there is
    no JSON.
    """
    files = {file.stem: file for file in sorted([*out.glob("*.csv"), *out.glob("*.json")])}
    return {
        name: _tables(file)
        for name, file in files.items()
        if name not in known and file.name not in _NO_RESULTS
    }


def _tables(file: Path) -> list[Table]:
    if file.suffix == ".csv":
        with file.open(newline="", encoding="utf-8") as text:
            return [_table(file.name, list(csv.DictReader(text)))]
    content = json.loads(file.read_text(encoding="utf-8"))
    lists = content.items() if isinstance(content, dict) else ()
    return [
        _table(f"{file.stem}: {name.replace('_', ' ')}", [dict(_plain(row)) for row in rows])
        for name, rows in lists
        if isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows)
    ]


def _table(title: str, rows: Sequence[Mapping[str, str]]) -> Table:
    columns = tuple(dict.fromkeys(column for row in rows for column in row))
    shown = tuple(tuple(_cut(row.get(c) or "") for c in columns) for row in rows[:MOST_ROWS])
    more = f", the first {MOST_ROWS} of {len(rows)} rows" if len(rows) > MOST_ROWS else ""
    return Table(title + more, columns, shown)


def _plain(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Names and values of the plain values in an object, and in objects inside of it."""
    for key, value in row.items():
        match value:
            case dict() if not prefix:
                yield from _plain(value, f"{key} ")
            case bool():
                yield prefix + key, "yes" if value else "no"
            case int() | float():
                yield prefix + key, number(value)
            case str():
                yield prefix + key, value


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
