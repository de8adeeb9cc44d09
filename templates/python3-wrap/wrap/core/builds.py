"""Builds of a workflow's wraps: only wraps of one build share a request.

During a redeployment in place, wraps are of an old or a new build. An entry then waits for wraps of
its build, or hands the request to an entry of the other. So an answer is wholly old or new.
"""

from __future__ import annotations

import hashlib
from functools import cache

from wrap.core.errors import TaskError
from wrap.core.recovery import may_retry

#: The code of the error if another build calls a wrap, or its own build hands it a request.
OTHER_BUILD = "other-build"
#: The pause before other builds are tried again, in seconds.
PAUSE_S = 0.05
#: How long an entry keeps a handed-on request while another wrap is not of its build, in seconds. A
#: gateway picks any replica, so some calls reach the other build.
_KEPT_S = 2.0
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


def is_given_back(since: float, now: float) -> bool:
    """Return whether an entry gives a request back: the last replica of its build may have ended.

    Another wrap has not been of the entry's build `since` then.

    >>> is_given_back(since=5.0, now=6.0), is_given_back(since=5.0, now=7.0)
    (False, True)
    """
    return now >= since + _KEPT_S


def other_build(message: str) -> TaskError:
    return TaskError(OTHER_BUILD, f"{message}: deploy all wraps of the workflow", status=503)


def may_hand_on(own: str, attempts: int) -> bool:
    """Return whether an entry may hand on a request some of whose tasks may have begun.

    Args:
        attempts: how often a task may begin.

    >>> may_hand_on("old", attempts=2), may_hand_on("old", attempts=1), may_hand_on("", attempts=2)
    (True, False, False)
    """
    return bool(own) and may_retry(0, attempts)
