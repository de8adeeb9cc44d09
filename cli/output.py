"""Output of verbs: results go to stdout; progress, tables and errors to stderr.

Modules for artefacts are imported on demand, as their import dominates the start of other verbs.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console

    from chiron.workflow.timeline import Timeline

#: Most characters of a line of a table, also where there is no terminal.
_WIDTH = 100
#: Most of a cell before its text is broken.
_LONGEST_CELL = 40


def console() -> Console:
    """Return a console on stderr, in colour on a terminal unless NO_COLOR is set."""
    from rich.console import Console  # a quarter of the time that most verbs need to begin

    out = Console(stderr=True, highlight=False)
    out.width = min(out.width, _WIDTH) if out.is_terminal else _WIDTH
    return out


def progress(line: str) -> None:
    """Print a step of the progress."""
    _line(click.style("·", dim=True), line)


def warn(lines: Iterable[str]) -> None:
    """Print each reason once why a starred result is unreliable."""
    for line in dict.fromkeys(lines):
        _line(click.style("* warning:", fg="yellow"), line)


def error_line(message: str) -> None:
    _line(click.style("error:", fg="red"), message)


def next_step(command: str) -> None:
    """Print the next command to type."""
    _line(click.style("next:", dim=True), command)


def data(content: str | bytes) -> None:
    """Write a result to stdout: unchanged to files and pipes, escaped on a terminal."""
    encoded = content.encode() if isinstance(content, str) else content
    if sys.stdout.isatty():
        encoded = plain(encoded.decode(errors="replace"), kept="\n\t").encode()
    click.echo(encoded, nl=False)


def emit(document: BaseModel, path: Path | None, as_json: bool) -> None:
    """Write an artefact to its file, and print it with --json."""
    from chiron.workflow.documents import dump, write_atomically

    text = dump(document)
    if path is not None:
        write_atomically(path, text)
        progress(f"wrote {path}")
    if as_json or path is None:
        data(text)


def write_timeline(timeline: Timeline, trace: Path | None, path: Path | None) -> None:
    """Write the timeline to the given files: as a Chrome trace, and as JSON."""
    from chiron.workflow.chrome_trace import chrome_trace
    from chiron.workflow.documents import write_atomically

    if trace is not None:
        write_atomically(trace, json.dumps(chrome_trace(timeline)) + "\n")
        progress(f"wrote {trace}: open it in Perfetto")
    if path is not None:
        emit(timeline, path, as_json=False)


def table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    notes: Iterable[str] = (),
    keys: int = 1,
    words: Container[int] = (0,),
) -> None:
    """Print a table: columns `words` hold words, the others numbers; `notes` explain columns.

    Columns beyond the width continue below, beside the first `keys` columns.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    out, cells = console(), [[plain(cell) for cell in row] for row in rows]
    widths = [_least(column, index, cells) for index, column in enumerate(columns)]
    heading: Text | None = Text(plain(title))
    for block in _blocks(widths, keys, out.width):
        drawn = Table(
            title=heading, title_justify="left", box=box.SIMPLE_HEAD, padding=0, pad_edge=False
        )
        for index in block:
            justify: Literal["left", "right"] = "left" if index in words else "right"
            drawn.add_column(columns[index], justify=justify, min_width=widths[index])
        for row in cells:
            drawn.add_row(*(Text(row[index]) for index in block))
        out.print(drawn)
        heading = None
    for note in notes:
        out.print(Text(plain(note), style="dim"))


def _least(column: str, index: int, cells: Sequence[Sequence[str]]) -> int:
    """Return the least width of a column: headers break between words, long cells anywhere."""
    words = max(map(len, column.split()), default=0)
    longest = max((len(row[index]) for row in cells), default=0)
    return max(words, min(longest, _LONGEST_CELL))


def _blocks(widths: Sequence[int], keys: int, most: int) -> Iterator[list[int]]:
    """Split columns into blocks of at most `most` characters, with a space around each column."""
    block = list(range(keys))
    for index in range(keys, len(widths)):
        wide = 1 + sum(widths[each] + 1 for each in (*block, index))
        if wide > most and len(block) > keys:
            yield block
            block = list(range(keys))
        block.append(index)
    yield block


def _line(label: str, message: str) -> None:
    click.echo(f"{label} {plain(message)}", err=True, color=_colours())


def _colours() -> bool | None:
    """Whether to use colours: NO_COLOR wins over FORCE_COLOR; None depends on the terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    return True if os.environ.get("FORCE_COLOR") else None


def plain(text: str, kept: str = "") -> str:
    """Escape the control characters in `text` except those in `kept`.

    Texts of functions, gateways and files could move the cursor, rename the window or type. They
    are escaped in pipes too, as grep or tail may print them on a terminal.
    """
    return "".join(c if c.isprintable() or c in kept else ascii(c)[1:-1] for c in text)
