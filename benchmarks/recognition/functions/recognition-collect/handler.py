"""Joins the digits of the sheets, and counts the doubtful digits."""

import json


def handle(req: str) -> str:
    """Return all `digits`, cells of `doubtful` digits by place, and their number `unsure`."""
    request = json.loads(req)
    doubtful, before = {}, 0
    for digits, found in zip(request["digits"], request["doubtful"], strict=True):
        doubtful |= {before + int(place): cells for place, cells in found.items()}
        before += len(digits)
    answer = {"digits": "".join(request["digits"]), "doubtful": doubtful}
    return json.dumps(answer | {"unsure": len(doubtful)})
