"""Emits a preview after a quarter of its work, and continues to compute."""

import json

from chiron_io import emit


def compute(rounds, value):
    for n in range(rounds):
        value = (value * 1103515245 + n) % 2147483648
    return value


def handle(req):
    rounds = json.loads(req)["rounds"]
    value = compute(rounds // 3, 7)
    emit("preview", json.dumps({"rounds": rounds, "value": value}))
    return json.dumps({"rounds": rounds, "value": compute(rounds, value)})
