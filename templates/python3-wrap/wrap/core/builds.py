"""Builds of a workflow's wraps: only wraps of one build share a request.

During a redeployment in place, wraps are of an old or a new build. An entry then waits for wraps of
its build, or hands the request to an entry of the other. So an answer is wholly old or new.
"""

from __future__ import annotations

import hashlib
from functools import cache

from wrap.core.errors import TaskError

#: The code of the error if another build calls a wrap, or its own build hands it a request.
OTHER_BUILD = "other-build"
#: The pause before other builds are tried again, in seconds.
PAUSE_S = 0.05
_DIGITS = 16


@cache
def build_of(key: str) -> str:
    """Return the name of the build with `key`, which does not reveal the key; empty without a key.

    >>> build_of(""), build_of("a key") == build_of("a key"), build_of("a key") == build_of("b")
    ('', True, False)
    """
    return hashlib.sha256(key.encode()).hexdigest()[:_DIGITS] if key else ""


def check_caller(wrap: str, own: str, callers: str) -> None:
    """Raise ``other-build`` if both sides have a build and the caller's is another."""
    if own and callers and callers != own:
        raise other_build(f"wrap {wrap} is of another build than its caller")


def is_handed_back(own: str, handers: str) -> bool:
    """Return whether an entry got a request that an entry of its own build handed on.

    Such a request is refused at once, as all executions of the entry may wait for another build.

    >>> is_handed_back("old", "old"), is_handed_back("new", "old"), is_handed_back("", "")
    (True, False, False)
    """
    return bool(own) and handers == own


def other_build(message: str) -> TaskError:
    return TaskError(OTHER_BUILD, f"{message}: deploy all wraps of the workflow", status=503)
