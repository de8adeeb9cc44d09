"""Reserves the article of a line in a warehouse. A python3-http function."""

import json
import time
import zlib
from typing import Any

WAREHOUSES = ("east", "north", "south", "west")
ANSWER_MS = 12  # of a warehouse: it stands for another machine, so the function sleeps


def handle(event: Any, context: Any) -> dict[str, Any]:
    """Return the warehouse of the article, and the number of the reservation."""
    request = json.loads(event.body)
    time.sleep(ANSWER_MS / 1000)
    article = request["line"]["article"]
    warehouse = WAREHOUSES[zlib.crc32(article.encode()) % len(WAREHOUSES)]
    reservation = f"{request['order']}-{request['number'] + 1}"
    body = json.dumps({"article": article, "warehouse": warehouse, "reservation": reservation})
    return {"statusCode": 200, "headers": {"Content-Type": "application/json"}, "body": body}
