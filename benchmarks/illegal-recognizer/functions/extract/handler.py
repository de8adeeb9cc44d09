"""Reads the text in a picture: compares every position with the letters of a font."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from .font import COLUMNS, LEADING, LETTERS, PITCH, ROWS
from .picture import Picture, decode

LIGHT = 200  # the least red, green and blue of a pixel of text
MOST_WRONG = 2  # the most wrong pixels of a letter, and the most light pixels of a space
HIGH, WIDE = ROWS + 2, COLUMNS + 2  # a letter and the dark pixels around it
COLUMN = (1 << HIGH) - 1
WINDOW = (1 << HIGH * WIDE) - 1


def template(rows: tuple[int, ...]) -> int:
    """Return the window of a letter: its pixels and the dark pixels around them."""
    bits = 0
    for left in reversed(range(WIDE)):
        for row in (0, *rows, 0):
            bits = bits << 1 | row << 1 >> left & 1
    return bits


TEMPLATES = {letter: template(rows) for letter, rows in LETTERS.items()}
INKS = [bits.bit_count() for bits in TEMPLATES.values()]
LEAST_INK, MOST_INK = min(INKS) - MOST_WRONG, max(INKS) + MOST_WRONG


class Ink(NamedTuple):
    """The light pixels of a picture: a number for each column, its top bit the first row.

    A dark pixel is added on every side.
    """

    height: int
    columns: list[int]

    @classmethod
    def of(cls, picture: Picture) -> "Ink":
        """Find the light pixels."""
        width, height, pixels = picture
        colours = zip(pixels[::3], pixels[1::3], pixels[2::3], strict=True)
        light = "".join(["1" if min(colour) >= LIGHT else "0" for colour in colours])
        columns = [int(light[x::width], 2) << 1 for x in range(width)]
        return cls(height + 2, [0, *columns, 0])

    def windows(self, y: int, start: int = 0) -> Iterator[int]:
        """Yield the windows of letters at (start, y), (start + 1, y), ...

        The pixels are bits of a number, column by column from the left, each from its top.
        """
        shift = self.height - HIGH - y
        bits = 0
        for x, column in enumerate(self.columns[start:], 1):
            bits = (bits << HIGH | column >> shift & COLUMN) & WINDOW
            if x >= WIDE:
                yield bits


def nearest(window: int) -> tuple[int, str]:
    """Return the number of different pixels and the letter most like the window."""
    return min([((window ^ bits).bit_count(), letter) for letter, bits in TEMPLATES.items()])


def anchors(ink: Ink) -> list[tuple[int, int]]:
    """Return (y, x) of the windows that resemble a letter, only the best of neighbours."""
    found = []
    for y in range(ink.height - HIGH + 1):
        for x, window in enumerate(ink.windows(y)):
            if LEAST_INK <= window.bit_count() <= MOST_INK:
                wrong, _ = nearest(window)
                if wrong <= MOST_WRONG:
                    found.append((wrong, y, x))
    kept: list[tuple[int, int]] = []
    for _, y, x in sorted(found):
        if all(abs(y - other) >= ROWS or abs(x - column) >= COLUMNS for other, column in kept):
            kept.append((y, x))
    return sorted(kept)


def read_cell(window: int) -> str:
    """Return the letter of a window in a line, a space, or ? if it is unreadable."""
    if window.bit_count() <= MOST_WRONG:
        return " "
    wrong, letter = nearest(window)
    return letter if wrong <= MOST_WRONG else "?"


def words_of(ink: Ink) -> list[dict[str, Any]]:
    """Return every word with its box, line by line."""
    lines: dict[int, list[int]] = {}
    for y, x in anchors(ink):
        lines.setdefault(y, []).append(x)
    words = []
    for y, columns in sorted(lines.items()):
        first = min(columns) % PITCH  # unreadable letters may come before the first anchor
        cells = islice(ink.windows(y, first), 0, None, PITCH)
        text = "".join(map(read_cell, cells))
        start = 0
        for word in text.split(" "):
            if word.strip("?"):
                box = [first + start * PITCH - 1, y - 1, len(word) * PITCH + 1, LEADING]
                words.append({"text": word, "box": box})
            start += len(word) + 1
    return words


def handle(req: str) -> str:
    """Return the words in the picture, each with its box."""
    request = json.loads(req)
    words = words_of(Ink.of(decode(request["image"])))
    return json.dumps({"id": request["id"], "words": words})
