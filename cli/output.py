"""What verbs print: results to stdout, progress, tables and errors to stderr."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import click
from pydantic import BaseModel
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from workflow.documents import dump, write_atomically

#: Width of what goes to no terminal: a file has no edge to which figures have to be cut.
_WIDE = 200


def console() -> Console:
    """Stderr, with colours where it is a terminal and NO_COLOR is not set."""
    out = Console(stderr=True, highlight=False)
    if not out.is_terminal:
        out.width = _WIDE
    return out


def progress(line: str) -> None:
    """One step of what goes on."""
    _line(("·", "dim"), line)


def error_line(message: str) -> None:
    """An error, on one line."""
    _line(("error:", "red"), message)


def next_step(command: str) -> None:
    """The command that comes next."""
    _line(("next:", "dim"), command)


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
    drawn = Table(
        title=_plain(title),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=0,
        pad_edge=False,
    )
    for index, column in enumerate(columns):
        drawn.add_column(column, justify="right" if index else "left")
    for row in rows:
        drawn.add_row(*map(_plain, row))
    console().print(drawn)


def _line(label: tuple[str, str], message: str) -> None:
    console().print(Text.assemble(label, " ", _plain(message)), soft_wrap=True)


def _plain(text: str) -> Text:
    """`text` on one line, with nothing in it taken for markup or for a control code."""
    return Text("".join(c if c.isprintable() else ascii(c)[1:-1] for c in text))
