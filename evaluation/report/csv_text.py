"""Rows of results as CSV: one column a figure, with dots where a figure is inside of another."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel


def as_csv(rows: Sequence[BaseModel]) -> str:
    """A line a row, under the names of all fields that any row has; empty for no rows."""
    flat = [dict(_flat(row.model_dump(mode="json"), "")) for row in rows]
    columns = list(dict.fromkeys(column for row in flat for column in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


def _flat(value: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        if isinstance(item, Mapping):
            yield from _flat(item, f"{prefix}{key}.")
        elif item is not None:
            yield f"{prefix}{key}", item
