"""Has the function beside it, `original`, reduce a group, and says when it had that, and more.

That is when the last of its objects was made, in seconds of the time of day.
"""

import json
import os
import time

import original  # type: ignore[import-not-found]

STORE, PASSWORD = os.environ.get("OBJECTS_STORE"), os.environ.get("OBJECTS_PASSWORD", "")
DEADLINE_S = 60.0


def handle(req: str) -> str:
    """Answer what it makes of the objects, or of those that a store has under their names."""
    given = json.loads(req)
    parts = given
    if STORE:
        from wrap.net.object_store import store_of  # which is there in a wrap alone

        store, deadline = store_of(STORE, PASSWORD), time.monotonic() + DEADLINE_S
        parts = [json.loads(store.get(each["name"], deadline)) for each in given]
    had = time.time()
    result = original.reduced(parts)
    if STORE:
        store.delete([each["name"] for each in given], deadline)
    return json.dumps(result | {"made": max(each["made"] for each in given), "had": had})
