"""The mechanisms: how a wrap gets its further processes, one file each.

The rest of the code uses these objects and no mechanism's name. To add a mechanism, add a file
here, its entry in `MECHANISMS`, its constants in `chiron.workflow.platform.Platform`, and a file in
the template's ``wrap/workers/mechanisms``.
"""

from __future__ import annotations

from chiron.predictor.mechanisms.fork import Fork
from chiron.predictor.mechanisms.interpreters import Interpreters
from chiron.predictor.mechanisms.mechanism import Mechanism
from chiron.predictor.mechanisms.pool import Pool
from chiron.workflow.errors import ChironError
from chiron.workflow.platform import Platform

MECHANISMS: dict[str, Mechanism] = {each.name: each for each in (Fork(), Pool(), Interpreters())}
#: The mechanisms that every Python and every function can have.
EVERYWHERE = tuple(name for name, each in MECHANISMS.items() if not each.is_tried)
DEFAULT_MECHANISM = Fork.name


def mechanism_of(name: str) -> Mechanism:
    """Return the mechanism called `name` in plans.

    Raises ``unknown-mechanism``.
    """
    if name not in MECHANISMS:
        known = " or ".join(MECHANISMS)
        message = f"there is no mechanism {name!a}: plan with {known}"
        raise ChironError("unknown-mechanism", message)
    return MECHANISMS[name]


def mechanisms_with(python: tuple[float, ...]) -> tuple[str, ...]:
    """Return the names of the mechanisms that wraps with that version of Python can have."""
    return tuple(name for name, each in MECHANISMS.items() if each.python <= python)


def mechanisms_on(platform: Platform) -> tuple[str, ...]:
    """Return the names of the mechanisms that wraps on `platform` can have."""
    return tuple(name for name, each in MECHANISMS.items() if each.is_on(platform))
