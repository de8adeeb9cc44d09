"""What the fork server loads before it forks: what every request would otherwise load for itself.

Only the fork server imports this: the server itself and the command line need less.
"""

from __future__ import annotations

from contextlib import suppress

import networkx  # noqa: F401  # what plans a workflow loads it on use, as it takes so long

import chiron.services.app
import chiron.services.dashboard.reading  # noqa: F401
from chiron.predictor.compiling import kernel

with suppress(Exception):  # whatever needs it will say what is wrong
    kernel()
