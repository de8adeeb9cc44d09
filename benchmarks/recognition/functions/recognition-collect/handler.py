"""Puts together what was read on the sheets, and says of how many pictures one is not sure."""

import json


def handle(req: str) -> str:
    """Answer all `digits`, the `doubtful` ones by their places in them, and how many these are."""
    request = json.loads(req)
    doubtful, before = {}, 0
    for digits, found in zip(request["digits"], request["doubtful"], strict=True):
        doubtful |= {before + int(place): cells for place, cells in found.items()}
        before += len(digits)
    answer = {"digits": "".join(request["digits"]), "doubtful": doubtful}
    return json.dumps(answer | {"unsure": len(doubtful)})
