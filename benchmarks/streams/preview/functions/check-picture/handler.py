"""Waits for something with what has been computed."""

import json
import time


def handle(req):
    asked = json.loads(req)
    time.sleep(0.02)
    return json.dumps(asked["value"] % 97)
