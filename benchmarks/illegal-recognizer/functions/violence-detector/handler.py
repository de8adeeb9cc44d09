"""Finds blood: blocks of the picture that are red and ragged."""

import json
from collections import Counter
from itertools import groupby

from .picture import Picture, decode

BLOCK = 8  # pixels, across and down
REDNESS = 80  # the least redness of a red pixel
LEAST_RED = 8  # pixels of a block
LEAST_RAGGED = 2500  # the sum of a block's gradients


def redness(picture: Picture) -> list[list[int]]:
    """Return, for every pixel in rows, the excess of red over the other colours."""
    pixels = picture.pixels
    values = [
        max(0, red - max(green, blue))
        for red, green, blue in zip(pixels[::3], pixels[1::3], pixels[2::3], strict=True)
    ]
    return [values[start : start + picture.width] for start in range(0, len(values), picture.width)]


def gradients(above: list[int], row: list[int], below: list[int]) -> list[int]:
    """Return the size of Sobel's gradient at every pixel of `row` but the first and the last."""
    smooth = [a + 2 * b + c for a, b, c in zip(above, row, below, strict=True)]
    steep = [c - a for a, c in zip(above, below, strict=True)]
    across = [abs(right - left) for left, right in zip(smooth, smooth[2:], strict=False)]
    down = [abs(a + 2 * b + c) for a, b, c in zip(steep, steep[1:], steep[2:], strict=False)]
    return [a + b for a, b in zip(across, down, strict=True)]


def blocks(rows: list[list[int]]) -> list[tuple[int, int]]:
    """Return (row, column) of the blocks that are red and ragged, in that order."""
    red: Counter[tuple[int, int]] = Counter()
    ragged: Counter[tuple[int, int]] = Counter()
    for y in range(1, len(rows) - 1):
        found = gradients(*rows[y - 1 : y + 2])
        for x in range(0, len(found), BLOCK):
            block = (y // BLOCK, x // BLOCK)
            red[block] += sum(value >= REDNESS for value in rows[y][x + 1 : x + 1 + BLOCK])
            ragged[block] += sum(found[x : x + BLOCK])
    return sorted(b for b in red if red[b] >= LEAST_RED and ragged[b] >= LEAST_RAGGED)


def boxes_of(found: list[tuple[int, int]], picture: Picture) -> list[list[int]]:
    """Return [x, y, width, height] of every run of blocks that touch in a row."""
    boxes = []
    # In a run of consecutive columns, column minus index in the list is constant.
    for (row, _), run in groupby(enumerate(found), lambda each: (each[1][0], each[1][1] - each[0])):
        columns = [column for _, (_, column) in run]
        left, top = columns[0] * BLOCK, row * BLOCK
        width = min(len(columns) * BLOCK, picture.width - left)
        boxes.append([left, top, width, min(BLOCK, picture.height - top)])
    return boxes


def handle(req: str) -> str:
    """Return the picture's bloody parts as `findings`, each with its box."""
    request = json.loads(req)
    picture = decode(request["image"])
    rows = redness(picture)
    findings = [{"reason": "blood", "box": box} for box in boxes_of(blocks(rows), picture)]
    total = sum(map(sum, rows))
    return json.dumps({"id": request["id"], "redness": total, "findings": findings})
