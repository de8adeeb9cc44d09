"""Which builds of a workflow's wraps work together: only wraps of one build share a request.

While all wraps are deployed anew in place, some are of the new build and some of the old one. Then
the entry waits until another wrap is of its build, or until an entry of another build takes the
whole request. So an answer is wholly old or wholly new.
"""

from __future__ import annotations

import hashlib
from functools import cache

from wrap.core.errors import TaskError
from wrap.core.recovery import may_follow

#: The code of the error of a wrap that is asked by another build, or handed a request by its own.
OTHER_BUILD = "other-build"
#: How long to wait before other builds are tried again, in seconds.
PAUSE_S = 0.05
#: How long an entry keeps a request that was handed on to it, and for which another wrap is not of
#: its build, in seconds. A gateway names any replica: some calls meet one of the other build.
_KEPT_S = 2.0
_DIGITS = 16


@cache
def build_of(key: str) -> str:
    """The name of the build that has `key`, which does not tell the key; empty without a key.

    >>> build_of(""), build_of("a key") == build_of("a key"), build_of("a key") == build_of("b")
    ('', True, False)
    """
    return hashlib.sha256(key.encode()).hexdigest()[:_DIGITS] if key else ""


def check_caller(wrap: str, own: str, callers: str) -> None:
    """Raise ``other-build`` if the caller is of another build, where both have one."""
    if own and callers and callers != own:
        raise other_build(f"wrap {wrap} is of another build than its caller")


def is_handed_back(own: str, handers: str) -> bool:
    """Whether an entry has got a request that an entry of its own build handed on.

    Such a request is refused at once: all that the entry executes may wait for another build.

    >>> is_handed_back("old", "old"), is_handed_back("new", "old"), is_handed_back("", "")
    (True, False, False)
    """
    return bool(own) and handers == own


def is_given_back(since: float, now: float) -> bool:
    """Whether an entry gives back a request that was handed on to it, for which another wrap has
    not been of its build `since` then: the last replica of its build may have ended.

    >>> is_given_back(since=5.0, now=6.0), is_given_back(since=5.0, now=7.0)
    (False, True)
    """
    return now >= since + _KEPT_S


def other_build(message: str) -> TaskError:
    return TaskError(OTHER_BUILD, f"{message}: deploy all wraps of the workflow", status=503)


def may_hand_on(own: str, attempts: int) -> bool:
    """Whether an entry may hand on a request of which tasks may have begun.

    Args:
        attempts: how often a task may begin.

    >>> may_hand_on("old", attempts=2), may_hand_on("old", attempts=1), may_hand_on("", attempts=2)
    (True, False, False)
    """
    return bool(own) and may_follow(0, attempts)
