"""Shutdown of a replica: what it still accepts, when it exits, and which replica replaces it."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def accepts_execution(ending: bool, urged: bool, is_expected: bool) -> bool:
    """Return whether a replica takes part in another execution.

    Args:
        ending: whether the replica was told to shut down.
        urged: whether its wrap has no other replica.
        is_expected: whether it has objects or streams of the execution, which nobody would resend.
    """
    return not ending or urged or is_expected


def accepts_data(ending: bool, is_expected: bool) -> bool:
    """Return whether a replica keeps data for an execution that may begin later."""
    return not ending or is_expected


def may_exit(since_s: float, linger_s: float, in_hand: bool, patience_s: float) -> bool:
    """Return whether a replica may exit `since_s` seconds after it was told to shut down.

    Args:
        linger_s: the time in which others learn of the shutdown, in seconds.
        in_hand: whether a task, an answer or an object has still to be finished or sent.
        patience_s: the further time for what is in hand, in seconds.
    """
    return since_s >= linger_s + (patience_s if in_hand else 0.0)


def replica_of(execution: int, known: Sequence[str], ending: Collection[str]) -> str | None:
    """Return the replica for an execution; one that shuts down only if there is no other."""
    candidates = [each for each in known if each not in ending] or known
    return candidates[execution % len(candidates)] if candidates else None
