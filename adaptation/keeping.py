"""What people and scalers have set on the functions that serve: those in their place keep it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from chiron.adaptation.events import Event, Tell
from chiron.generator.annotations import given_of, is_ours
from chiron.openfaas.client import Gateway
from chiron.openfaas.objects import FunctionStatus
from chiron.openfaas.stack import StackFile, StackFunction

#: Labels that providers give the functions themselves: faas-netes, and its operator.
_PROVIDERS = frozenset({"app", "controller", "faas_function", "uid"})
#: How often replicas are counted that are to get ready, in seconds.
_LOOK_S = 0.2


def merged(
    new: Mapping[str, str], given: Mapping[str, str], now: Mapping[str, str]
) -> dict[str, str]:
    """What a function is to have that takes the place of another one.

    Parameters
    ----------
    new
        What its own stack.yaml says.
    given
        What the stack.yaml of the other one said.
    now
        What the other one has: where that differs from `given`, somebody has set it.

    Examples
    --------
    >>> merged({"team": "b"}, {"team": "a"}, {"team": "a", "tier": "gold"})
    {'team': 'b', 'tier': 'gold'}
    >>> merged({"team": "a", "old": "1"}, {"team": "a", "old": "1"}, {"team": "mine"})
    {'team': 'mine'}
    """
    changed = {key: value for key, value in now.items() if given.get(key) != value}
    removed = given.keys() - now.keys()
    return {key: value for key, value in {**new, **changed}.items() if key not in removed}


def keeping(function: StackFunction, before: FunctionStatus) -> StackFunction:
    """`function` with the labels and annotations that somebody has set on the one `before` it.

    Without a record of what that was given, nothing is known to be set by others.
    """
    given = given_of(before.annotations)
    if given is None:
        return function
    labels = {k: v for k, v in before.labels.items() if k not in _PROVIDERS}
    theirs = {k: v for k, v in before.annotations.items() if not is_ours(k)}
    ours = {k: v for k, v in function.annotations.items() if is_ours(k)}
    others = {k: v for k, v in function.annotations.items() if not is_ours(k)}
    return function.model_copy(
        update={
            "labels": merged(function.labels, given.labels, labels),
            "annotations": ours | merged(others, given.annotations, theirs),
        }
    )


def all_keeping(stack: StackFile, before: Mapping[str, FunctionStatus]) -> StackFile:
    """`stack`, each function of which keeps what was set on the one `before` it."""
    functions = {
        name: keeping(function, before[name]) if name in before else function
        for name, function in stack.functions.items()
    }
    return stack.model_copy(update={"functions": functions})


def keep_replicas(
    gateway: Gateway, before: Mapping[str, FunctionStatus], tell: Tell, within_s: float
) -> None:
    """Give functions as many replicas as those `before` them have, and wait until they are ready.

    Those that have as many stay as they are. What is not ready `within_s` seconds is told.
    """
    wanted = dict[str, int]()
    for name, function in before.items():
        if gateway.describe(name).replicas < function.replicas:
            wanted[name] = function.replicas
            gateway.scale(name, function.replicas)
    until = time.monotonic() + within_s
    while missing := _missing(gateway, wanted):
        if time.monotonic() > until:
            message = f"{', '.join(missing)}: fewer replicas are ready than before"
            tell(Event("kept", message, {"functions": list(missing)}))
            return
        time.sleep(_LOOK_S)


def _missing(gateway: Gateway, wanted: Mapping[str, int]) -> Sequence[str]:
    """The functions with fewer ready replicas than are wanted."""
    return [name for name, count in wanted.items() if _ready(gateway, name) < count]


def _ready(gateway: Gateway, name: str) -> int:
    return gateway.describe(name).available_replicas
