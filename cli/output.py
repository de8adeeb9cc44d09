"""What verbs print: results to stdout, progress, tables and errors to stderr."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import click
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table

from workflow.documents import dump, write_atomically


def console() -> Console:
    """Stderr, with colours where it is a terminal and NO_COLOR is not set."""
    return Console(stderr=True, highlight=False)


def progress(line: str) -> None:
    """One step of what goes on."""
    console().print(f"[dim]·[/dim] {_plain(line)}", soft_wrap=True)


def error_line(message: str) -> None:
    """An error, on one line."""
    console().print(f"[red]error:[/red] {_plain(message)}", soft_wrap=True)


def next_step(command: str) -> None:
    """The command that comes next."""
    console().print(f"[dim]next:[/dim] {_plain(command)}", soft_wrap=True)


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
    drawn = Table(title=title, title_justify="left")
    for index, column in enumerate(columns):
        drawn.add_column(column, justify="right" if index else "left", no_wrap=True)
    for row in rows:
        drawn.add_row(*map(_plain, row))
    console().print(drawn)


def _plain(text: str) -> str:
    """`text` on one line, with nothing in it taken for rich's markup or for a control code."""
    printable = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return printable.replace("[", "\\[")
