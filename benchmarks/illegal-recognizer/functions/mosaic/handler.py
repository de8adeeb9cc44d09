"""Blurs the boxes of a picture's findings."""

import json
from collections.abc import Iterable
from itertools import accumulate
from typing import Any

from .picture import Picture, decode, encode

RADIUS = 4  # a pixel becomes the mean of this many pixels on each side and itself
PASSES = 3  # three box filters are nearly a Gaussian filter


def means(values: Iterable[int]) -> list[int]:
    """Return the mean of every value and its neighbours; the end values repeat beyond the ends."""
    line = list(values)
    padded = [line[0]] * (RADIUS + 1) + line + [line[-1]] * RADIUS
    sums = list(accumulate(padded))
    size = 2 * RADIUS + 1
    return [(end - start) // size for start, end in zip(sums, sums[size:], strict=False)]


def blur(picture: Picture, boxes: list[list[int]]) -> Picture:
    """Return the picture with the boxes [x, y, width, height], clipped to it, blurred."""
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
    """Return the fields of all parts, with their `findings` in one list.

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
    """Return the picture with the boxes of all `findings` blurred; they move to `blurred`."""
    answer = joined(json.loads(req))
    findings = answer.pop("findings")
    picture = blur(decode(answer["image"]), [finding["box"] for finding in findings])
    blurred = answer.get("blurred", []) + findings
    return json.dumps(answer | {"image": encode(picture), "blurred": blurred})
