"""Makes a tall matrix of the requested size, and cuts it into blocks of rows."""

import json
from base64 import b64encode
from typing import Any

import numpy as np

try:
    from chiron_io import emit
except ImportError:  # an ordinary function returns all of its output at the end

    def emit(name: str, value: str) -> None:
        """Do nothing: there is no consumer."""


COLUMNS, RANK = 64, 16
NOISE = 1e-3  # beside the matrix of rank RANK


def matrix(rows: int) -> np.ndarray:
    """Return the matrix of shape (rows, COLUMNS), of nearly the rank RANK: always the same."""
    random = np.random.Generator(np.random.PCG64(rows))
    low = random.standard_normal((rows, RANK)) @ random.standard_normal((RANK, COLUMNS))
    return low + NOISE * random.standard_normal((rows, COLUMNS))


def handle(event: Any, context: Any) -> dict[str, Any]:
    """Return a matrix of `megabytes` in `parts` `blocks`: doubles in base64.

    Each block is emitted as soon as it is encoded: the first as `block-0`, in the form of
    svd-compute's input.
    """
    request = json.loads(event.body)
    rows = round(request["megabytes"] * 1e6 / (8 * COLUMNS))
    blocks = []
    for number, block in enumerate(np.array_split(matrix(rows), request["parts"])):
        blocks.append(json.dumps(b64encode(block.tobytes()).decode()))
        emit(f"block-{number}", f'{{"block": {blocks[-1]}}}')
    return {"statusCode": 200, "body": f'{{"blocks": [{", ".join(blocks)}]}}'}
