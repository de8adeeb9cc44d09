"""Maps a part with the module beside it, `original`, and adds to each object when it was made.

If OBJECTS_STORE names a store, only the objects' names there are emitted, as in PyWren.
"""

import json
import os
import time
from uuid import uuid4

import original  # type: ignore[import-not-found]
from chiron_io import emit

STORE, PASSWORD = os.environ.get("OBJECTS_STORE"), os.environ.get("OBJECTS_PASSWORD", "")
DEADLINE_S = 60.0


def handle(req: str) -> str:
    """Emit the objects, or their names, into the reducers' bucket."""
    parts = original.mapped(json.loads(req))
    made, store = time.time(), None
    if STORE:
        from wrap.net.object_store import store_of  # exists only in a wrap

        store = store_of(STORE, PASSWORD)
    for part in parts:
        given = part | {"made": made}
        if store is not None:
            given = {"name": uuid4().hex, "made": made}
            content = json.dumps(part).encode()
            store.put(given["name"], content, time.monotonic() + DEADLINE_S)
        emit("shuffled", json.dumps(given), group=part["group"])
    return ""
