"""Returns the size and the digest of a stream."""

import hashlib
import json

from chiron_io import open_input


def handle(req):
    digest, size = hashlib.sha256(), 0
    with open_input() as sound:
        while piece := sound.read(1 << 14):
            digest.update(piece)
            size += len(piece)
    return json.dumps({"bytes": size, "sha256": digest.hexdigest()})
