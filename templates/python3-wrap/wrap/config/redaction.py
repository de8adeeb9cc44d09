"""Takes the values of the wrap's secrets out of what callers are told of an error."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

#: Where OpenFaaS has them; the embedded gateway says where it has them.
SECRETS = Path(os.environ.get("secrets_dir") or "/var/openfaas/secrets")  # noqa: SIM112
#: Shorter ones, and shorter lines of long ones, would take ordinary words with them.
_SHORTEST, _SHORTEST_LINE = 4, 8
_PLACEHOLDER = "[secret]"


def redacted(text: str) -> str:
    """`text` without the secrets that the wrap had when it began."""
    for value in _VALUES:
        text = text.replace(value, _PLACEHOLDER)
    return text


def _values(folder: Path) -> list[str]:
    """What to take out, as it is and as ``repr`` shows it; the longest first."""
    files = [file for file in folder.glob("*") if file.is_file()] if folder.is_dir() else []
    plain = {value for file in files for value in _parts(file)}
    return sorted(plain | {repr(value)[1:-1] for value in plain}, key=len, reverse=True)


def _parts(file: Path) -> Iterator[str]:
    """The secret, and its lines: of an error's text only one line is told."""
    try:
        text = file.read_text().strip()
    except (OSError, UnicodeDecodeError):  # not for us, or no text that could be in one
        return
    if len(text) >= _SHORTEST:
        yield text
    yield from (line for line in map(str.strip, text.splitlines()) if len(line) >= _SHORTEST_LINE)


_VALUES = _values(SECRETS)
