"""Looks up the value of a station's quantity in memory."""

import json

STATIONS = QUANTITIES = 100
VALUES = {
    (station, quantity): (station * 7919 + quantity * 104729) % 10_000 / 10
    for station in range(STATIONS)
    for quantity in range(QUANTITIES)
}


def handle(req: str) -> str:
    """Return the station and the quantity with their `value`."""
    asked = json.loads(req)
    return json.dumps(asked | {"value": VALUES[asked["station"], asked["quantity"]]})
