"""Computes with the preview."""

import json


def handle(req):
    asked = json.loads(req)
    value = asked["value"]
    for n in range(asked["rounds"]):
        value = (value * 1103515245 + n) % 2147483648
    return json.dumps(value)
