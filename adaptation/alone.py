"""Locks that keep two commands of a user from changing one workflow on one gateway at once.

Both would deploy functions of the same names, and each would measure the other's functions.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path

from chiron.gateway.images import home
from chiron.generator.fingerprint import digest
from chiron.openfaas.client import Gateway
from chiron.workflow.documents import held, require_writable
from chiron.workflow.errors import ChironError


def deploying(gateway: Gateway, workflow: str) -> AbstractContextManager[None]:
    """Lock `workflow` against deploying and profiling by other commands; else ``in-use``."""
    return _alone("another command deploys", gateway, workflow, "wait for its end")


def watching(gateway: Gateway, workflow: str) -> AbstractContextManager[None]:
    """Lock `workflow` against other ``chiron watch`` commands; else ``in-use``."""
    return _alone("another chiron watch adapts", gateway, workflow, "end it first")


def _alone(who: str, gateway: Gateway, workflow: str, mend: str) -> AbstractContextManager[None]:
    place = home()
    try:
        require_writable(place, folder=True)
    except ChironError:  # only the embedded gateway needs that folder
        place = Path(tempfile.gettempdir(), f"chiron-{os.getuid()}")
    folder = place / "held" / digest([who, gateway.url, workflow])
    return held(folder, f"{who} {workflow} on {gateway.url}: {mend}")
