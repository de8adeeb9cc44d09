"""Removes the values of the wrap's secrets from errors sent to callers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

#: OpenFaaS's folder; the embedded gateway sets its own.
SECRETS = Path(os.environ.get("secrets_dir") or "/var/openfaas/secrets")  # noqa: SIM112
#: Shorter secrets, and shorter lines of long secrets, could remove ordinary words too.
_SHORTEST, _SHORTEST_LINE = 4, 8
_PLACEHOLDER = "[secret]"


def redacted(text: str) -> str:
    """Return `text` without the secrets that the wrap had when it began."""
    for value in _VALUES:
        text = text.replace(value, _PLACEHOLDER)
    return text


def _values(folder: Path) -> list[str]:
    """Return the texts to remove, plain and as shown by ``repr``; the longest first."""
    files = [file for file in folder.glob("*") if file.is_file()] if folder.is_dir() else []
    plain = {value for file in files for value in _parts(file)}
    return sorted(plain | {repr(value)[1:-1] for value in plain}, key=len, reverse=True)


def _parts(file: Path) -> Iterator[str]:
    """Yield the secret and its lines, as only one line of an error is reported."""
    try:
        text = file.read_text().strip()
    except (OSError, UnicodeDecodeError):  # not readable, or not a text
        return
    if len(text) >= _SHORTEST:
        yield text
    yield from (line for line in map(str.strip, text.splitlines()) if len(line) >= _SHORTEST_LINE)


_VALUES = _values(SECRETS)
