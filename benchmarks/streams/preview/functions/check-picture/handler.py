"""Sleeps for 20 ms, as for another service, and checks the computed value."""

import json
import time


def handle(req):
    asked = json.loads(req)
    time.sleep(0.02)
    return json.dumps(asked["value"] % 97)
