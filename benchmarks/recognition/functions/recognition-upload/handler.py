"""Makes sheets of pictures of handwritten digits, from scikit-learn's data set."""

import json
from base64 import b64encode
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

CELL = 8  # a pixel of a digit (8 x 8) is 8 x 8 pixels of a picture (64 x 64)
DIGITS = load_digits().images / 16


def pictures(count: int, noise: int) -> np.ndarray:
    """Return `count` grey pictures; each cell is lighter or darker by at most `noise`."""
    random = np.random.Generator(np.random.PCG64(count))
    digits = DIGITS[random.integers(len(DIGITS), size=count)] * 255
    cells = digits + random.integers(-noise, noise + 1, size=digits.shape)
    return np.kron(cells.clip(0, 255).astype(np.uint8), np.ones((1, CELL, CELL), np.uint8))


def handle(event: Any, context: Any) -> dict[str, Any]:
    """Return `megabytes` of pictures on `parts` `sheets`, in base64."""
    request = json.loads(event.body)
    count = round(request["megabytes"] * 1e6 / (CELL * CELL * DIGITS[0].size))
    sheets = np.array_split(pictures(count, request["noise"]), request["parts"])
    body = {"sheets": [b64encode(sheet.tobytes()).decode() for sheet in sheets]}
    return {"statusCode": 200, "body": json.dumps(body)}
