"""The imports of the fork server: modules that every request would otherwise import for itself.

Only the fork server imports this: the server itself and the command line need less.
"""

from __future__ import annotations

from contextlib import suppress

import networkx  # noqa: F401  # planners import it lazily, as it takes long

import chiron.services.app
import chiron.services.dashboard.reading  # noqa: F401
from chiron.predictor.compiling import kernel

with suppress(Exception):  # its users will raise the error
    kernel()
