"""The mechanisms: how a wrap gets its further processes, one file each.

The rest of the code uses these objects and no mechanism's name. To add a mechanism, add a file
here, its entry in `MECHANISMS`, its constants in `chiron.workflow.platform.Platform`, and a file in
the template's ``wrap/workers/mechanisms``.
"""

from __future__ import annotations

from chiron.predictor.mechanisms.fork import Fork
from chiron.predictor.mechanisms.mechanism import Mechanism
from chiron.predictor.mechanisms.pool import Pool
from chiron.workflow.errors import ChironError

#: Every mechanism by its name.
MECHANISMS: dict[str, Mechanism] = {each.name: each for each in (Fork(), Pool())}
#: The default.
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
