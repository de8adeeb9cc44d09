"""Makes what was found in a picture unrecognizable: blurs its boxes."""

import json
from collections.abc import Iterable
from itertools import accumulate
from typing import Any

from .picture import Picture, decode, encode

RADIUS = 4  # pixels on each side that a pixel is the mean of
PASSES = 3  # that many box filters are nearly a Gaussian one


def means(values: Iterable[int]) -> list[int]:
    """Return the mean of every value and its neighbours; beyond the ends the last one goes on."""
    line = list(values)
    padded = [line[0]] * (RADIUS + 1) + line + [line[-1]] * RADIUS
    sums = list(accumulate(padded))
    size = 2 * RADIUS + 1
    return [(end - start) // size for start, end in zip(sums, sums[size:], strict=False)]


def blur(picture: Picture, boxes: list[list[int]]) -> Picture:
    """Return the picture with its boxes [x, y, width, height] blurred, as far as they are in it."""
    stride = 3 * picture.width
    pixels = bytearray(picture.pixels)
    for x, y, width, height in boxes:
        left, right = max(0, x), min(x + width, picture.width)
        lines = range(max(0, y), min(y + height, picture.height))
        starts = [line * stride + 3 * left for line in lines]
        length = 3 * (right - left)
        for colour in range(3):
            rows = [list(pixels[start + colour : start + length : 3]) for start in starts]
            for _ in range(PASSES):
                columns = list(map(means, zip(*map(means, rows), strict=True)))
                rows = [list(row) for row in zip(*columns, strict=True)]
            for start, row in zip(starts, rows, strict=True):
                pixels[start + colour : start + length : 3] = bytes(row)
    return picture._replace(pixels=bytes(pixels))


def joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the parts' fields together, their `findings` one list.

    Raises:
        ValueError: the parts are about different pictures.
    """
    if len({part["id"] for part in parts}) > 1:
        raise ValueError("the findings are of another picture")
    findings = [finding for part in parts for finding in part.get("findings", [])]
    fields: dict[str, Any] = {}
    for part in parts:
        fields |= part
    return fields | {"findings": findings}


def handle(req: str) -> str:
    """Answer the picture with the boxes of all `findings` blurred, which then are `blurred`."""
    answer = joined(json.loads(req))
    findings = answer.pop("findings")
    picture = blur(decode(answer["image"]), [finding["box"] for finding in findings])
    blurred = answer.get("blurred", []) + findings
    return json.dumps(answer | {"image": encode(picture), "blurred": blurred})
