"""What a state machine needs from outside the core: time, chance, JSONata, objects."""

from __future__ import annotations

import time
from random import SystemRandom

from wrap.core.placement import World
from wrap.values.jsonata import Jsonata
from wrap.values.value import JSON, Object


def _object(text: str, is_json: bool) -> Object:
    return Object(text, JSON if is_json else "")


WORLD = World(time.time, time.monotonic, SystemRandom(), Jsonata, _object)
