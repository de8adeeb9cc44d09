"""Reduces a group with the module beside it, `original`, and reports when the data was there.

It also reports when the last object was made. Both are in seconds of the time of day.
"""

import json
import os
import time

import original  # type: ignore[import-not-found]

STORE, PASSWORD = os.environ.get("OBJECTS_STORE"), os.environ.get("OBJECTS_PASSWORD", "")
DEADLINE_S = 60.0


def handle(req: str) -> str:
    """Return the result of the objects, or of the store's objects of these names."""
    given = json.loads(req)
    parts = given
    if STORE:
        from wrap.net.object_store import store_of  # exists only in a wrap

        store, deadline = store_of(STORE, PASSWORD), time.monotonic() + DEADLINE_S
        parts = [json.loads(store.get(each["name"], deadline)) for each in given]
    had = time.time()
    result = original.reduced(parts)
    if STORE:
        store.delete([each["name"] for each in given], deadline)
    return json.dumps(result | {"made": max(each["made"] for each in given), "had": had})
