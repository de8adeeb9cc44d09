"""Reads the digits of a sheet by linear discriminants, fitted when the module is imported."""

import json
from base64 import b64decode

import numpy as np
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

CELL, SIDE = 8, 8  # pixels to a cell, cells to a side of a picture
SURE = 0.7  # probability from which a digit counts as sure
DATA = load_digits()
MODEL = LinearDiscriminantAnalysis().fit(DATA.data / 16, DATA.target)


def handle(req: str) -> str:
    """Return the `digits` of the `sheet`, and the cells of `doubtful` digits by their places."""
    pixels = np.frombuffer(b64decode(json.loads(req)["sheet"]), np.uint8)
    cells = pixels.reshape(-1, SIDE, CELL, SIDE, CELL).mean((2, 4)).reshape(-1, SIDE * SIDE)
    likely = MODEL.predict_proba(cells / 255)
    unsure = np.flatnonzero(likely.max(1) < SURE)
    doubtful = {int(place): cells[place].astype(int).tolist() for place in unsure}
    digits = "".join(map(str, likely.argmax(1)))
    return json.dumps({"digits": digits, "doubtful": doubtful})
