"""The pictures that functions pass on: binary PPM (P6) in base64."""

import base64
import re
from typing import NamedTuple

HEADER = re.compile(rb"P6\s+([1-9]\d*)\s+([1-9]\d*)\s+255\s")


class Picture(NamedTuple):
    """Red, green and blue of every pixel, a byte each, row by row from the top."""

    width: int
    height: int
    pixels: bytes


def decode(text: str) -> Picture:
    """Return the picture in the base64 `text`.

    Raises:
        ValueError: `text` is not a PPM of 8 bits a colour, or is truncated.
    """
    data = base64.b64decode(text, validate=True)
    header = HEADER.match(data)
    if not header:
        raise ValueError("the image is no PPM (P6) of 8 bits a colour")
    width, height = int(header[1]), int(header[2])
    pixels = data[header.end() :]
    if len(pixels) != 3 * width * height:
        raise ValueError(f"the image of {width} x {height} has {len(pixels)} bytes of pixels")
    return Picture(width, height, pixels)


def encode(picture: Picture) -> str:
    """Return the picture as base64 text."""
    header = f"P6 {picture.width} {picture.height} 255\n".encode()
    return base64.b64encode(header + picture.pixels).decode()
