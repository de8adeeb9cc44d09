"""Remembers messages about deployed workflows, so that commands print each only once."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

#: So many lines are remembered, the newest ones.
_MOST = 1000


def untold(scope: str, lines: Iterable[str], folder: Path) -> list[str]:
    """Return the lines that were not printed for `scope` before, and mark them as printed.

    The record is in `folder`. If it cannot be written, all lines are printed again.
    """
    file = folder / "told"
    try:
        before = file.read_text().split()
    except (OSError, ValueError):
        before = []
    marks = {_mark(scope, line): line for line in lines}
    new = {mark: line for mark, line in marks.items() if mark not in before}
    if new:
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft = folder / f"told.{os.getpid()}"
            draft.write_text("\n".join([*before, *new][-_MOST:]))
            draft.replace(file)
    return list(new.values())


def _mark(scope: str, line: str) -> str:
    return sha256(f"{scope}\n{line}".encode()).hexdigest()[:16]
