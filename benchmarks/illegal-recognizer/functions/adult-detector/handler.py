"""Finds bare skin: connected regions of skin colours."""

import json
from collections.abc import Iterator

from .picture import Picture, decode

LEAST_PERCENT = 2  # of the picture: the least size of a region


def is_skin(red: int, green: int, blue: int) -> bool:
    """Tell whether a colour's chrominance is that of skin (Chai and Ngan 1999, ITU-R BT.601)."""
    return (
        77 <= 128 + (-43 * red - 85 * green + 128 * blue >> 8) <= 127
        and 133 <= 128 + (128 * red - 107 * green - 21 * blue >> 8) <= 173
    )


def skin(picture: Picture) -> bytearray:
    """Return 1 for every pixel of skin, else 0.

    An empty column follows every row and an empty row the last, so that regions end there.
    """
    width, height, pixels = picture
    mask = bytearray((width + 1) * (height + 1))
    found = bytes(map(is_skin, pixels[::3], pixels[1::3], pixels[2::3]))
    for y in range(height):
        mask[y * (width + 1) : y * (width + 1) + width] = found[y * width : (y + 1) * width]
    return mask


def regions(mask: bytearray, stride: int) -> Iterator[list[int]]:
    """Yield the indices of every connected region; clears the mask, whose rows have `stride`."""
    start = mask.find(1)
    while start >= 0:
        mask[start] = 0
        region = [start]
        for index in region:
            for neighbour in (index - stride, index - 1, index + 1, index + stride):
                if mask[neighbour]:
                    mask[neighbour] = 0
                    region.append(neighbour)
        yield region
        start = mask.find(1, start)


def box_of(region: list[int], stride: int) -> list[int]:
    """Return [x, y, width, height] of the smallest box around the region."""
    columns = [index % stride for index in region]
    top, bottom = min(region) // stride, max(region) // stride
    left, right = min(columns), max(columns)
    return [left, top, right - left + 1, bottom - top + 1]


def handle(req: str) -> str:
    """Return the picture's regions of skin as `findings`, each with its box."""
    request = json.loads(req)
    picture = decode(request["image"])
    mask = skin(picture)
    least = LEAST_PERCENT * picture.width * picture.height // 100
    total = mask.count(1)
    boxes = [
        box_of(region, picture.width + 1)
        for region in regions(mask, picture.width + 1)
        if len(region) >= least
    ]
    findings = [{"reason": "skin", "box": box} for box in boxes]
    return json.dumps({"id": request["id"], "skin_pixels": total, "findings": findings})
