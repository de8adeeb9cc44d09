"""What verbs print: results to stdout, progress, tables and errors to stderr."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from pydantic import BaseModel

from workflow.documents import dump, write_atomically

if TYPE_CHECKING:
    from rich.console import Console

#: Width of what goes to no terminal: a file has no edge to which figures have to be cut.
_WIDE = 200


def console() -> Console:
    """Stderr, with colours where it is a terminal and NO_COLOR is not set."""
    from rich.console import Console  # a quarter of the time that most verbs need to begin

    out = Console(stderr=True, highlight=False)
    if not out.is_terminal:
        out.width = _WIDE
    return out


def progress(line: str) -> None:
    """One step of what goes on."""
    _line(click.style("·", dim=True), line)


def error_line(message: str) -> None:
    """An error, on one line."""
    _line(click.style("error:", fg="red"), message)


def next_step(command: str) -> None:
    """The command that comes next."""
    _line(click.style("next:", dim=True), command)


def emit(document: BaseModel, path: Path | None, as_json: bool) -> None:
    """Write an artefact to its file, and print it where JSON was asked for."""
    text = dump(document)
    if path is not None:
        write_atomically(path, text)
        progress(f"wrote {path}")
    if as_json or path is None:
        click.echo(text, nl=False)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table: the first column of words, the others of numbers."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(
        title=Text(_plain(title)),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=0,
        pad_edge=False,
    )
    for index, column in enumerate(columns):
        drawn.add_column(column, justify="right" if index else "left")
    for row in rows:
        drawn.add_row(*(Text(_plain(cell)) for cell in row))
    console().print(drawn)


def _line(label: str, message: str) -> None:
    click.echo(f"{label} {_plain(message)}", err=True, color=_colours())


def _colours() -> bool | None:
    """As everywhere: NO_COLOR wins over FORCE_COLOR; None leaves it to whether it is a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    return True if os.environ.get("FORCE_COLOR") else None


def _plain(text: str) -> str:
    """`text` on one line, with nothing in it taken for a control code."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
