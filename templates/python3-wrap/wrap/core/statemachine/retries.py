"""Matches errors to Retry and Catch, and computes the delay before a retry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .chance import Chance
from .visits import MOST_SECONDS, Visit

#: The error that no Retry or Catch matches, and the errors that States.ALL does not match
#: (AWS Step Functions Developer Guide, "Error names").
_FATAL = "States.Runtime"
_TERMINAL = frozenset({_FATAL, "States.DataLimitExceeded"})


def names_of(state: Mapping[str, Any], name: str) -> set[str]:
    """Return all names under which a Retry or Catch of `state` can match the error `name`."""
    names = {name}
    if state["Type"] == "Parallel":
        names.add("States.BranchFailed")
    if name == "States.HeartbeatTimeout":
        names.add("States.Timeout")
    return names


def retrier_for(
    state: Mapping[str, Any], retried: Mapping[int, int], names: set[str]
) -> int | None:
    """Return the index of the matching retrier; None if its attempts are used up."""
    for index, retrier in enumerate(state.get("Retry", ())):
        if covers(retrier["ErrorEquals"], names):
            left = retried.get(index, 0) < retrier.get("MaxAttempts", 3)
            return index if left else None
    return None


def backoff_s(visit: Visit, index: int, chance: Chance) -> float:
    """Count one use of the retrier `index`, and return the delay before it in seconds."""
    retrier, used = visit.state["Retry"][index], visit.retried.get(index, 0)
    visit.retried[index] = used + 1
    most = float(retrier.get("MaxDelaySeconds", MOST_SECONDS))
    try:
        factor = float(retrier.get("BackoffRate", 2.0)) ** used
        seconds: float = min(retrier.get("IntervalSeconds", 1) * factor, most)
    except OverflowError:
        seconds = most
    if retrier.get("JitterStrategy") == "FULL":
        return chance.uniform(0.0, seconds)
    return seconds


def covers(patterns: Iterable[str], names: set[str]) -> bool:
    """Whether the patterns of a retrier or catcher match an error with these names.

    Nothing matches `_FATAL`, no wildcard matches `_TERMINAL`, and ``States.TaskFailed`` matches no
    timeout.
    """
    if _FATAL in names:
        return False
    for pattern in patterns:
        if pattern in names:
            return True
        if not names.isdisjoint(_TERMINAL):
            continue
        if pattern == "States.ALL" or (
            pattern == "States.TaskFailed" and "States.Timeout" not in names
        ):
            return True
    return False
