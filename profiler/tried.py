"""Which functions run by the mechanisms that not every Python has: each is tried there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from chiron.deployment.function_error import FunctionFailedError
from chiron.predictor.mechanisms import MECHANISMS
from chiron.predictor.mechanisms.mechanism import Mechanism
from chiron.profiler.invocation import Solo
from chiron.profiler.solo import Launch, alone
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.profile import FunctionProfile

#: Seconds after which a run is given up, and that many times the function's latency if it is more.
_LIMIT_S, _TIMES = 10.0, 10.0
#: The failure of functions that are not deployed to try the others.
_SKIPPED = ChironError("skipped", "it is not tried")

Profiles = Mapping[str, Sequence[FunctionProfile]]


def with_tried(
    profiles: Profiles,
    folder: WorkflowFolder,
    launch: Launch,
    inputs_of: Callable[[Solo], Iterable[Solo]],
    say: Callable[[str], None],
) -> dict[str, list[FunctionProfile]]:
    """Return `profiles`, each with what became of its function by each mechanism to try.

    Args:
        launch: deploys the functions, which all run once with each of their inputs.
        inputs_of: yields a function with each of its inputs alone.
    """
    found = {name: list(each) for name, each in profiles.items()}
    for mechanism in MECHANISMS.values():
        names = [name for name, each in found.items() if _has(mechanism, each[0].runtime)]
        if not mechanism.is_tried or not names:
            continue
        say(f"running them in {mechanism.processes}")
        reasons = _reasons(mechanism, names, found, folder, launch, inputs_of)
        for name, reason in reasons.items():
            if reason:
                say(f"warning: {name} cannot run in {mechanism.processes}: {reason}")
            found[name] = [
                each.model_copy(update={"tried": {**each.tried, mechanism.name: reason}})
                for each in found[name]
            ]
    return found


def _has(mechanism: Mechanism, runtime: str) -> bool:
    version = re.fullmatch(r"python(\d+)\.(\d+)t?", runtime)
    return version is not None and tuple(map(int, version.groups())) >= mechanism.python


def _reasons(
    mechanism: Mechanism,
    names: Sequence[str],
    profiles: Profiles,
    folder: WorkflowFolder,
    launch: Launch,
    inputs_of: Callable[[Solo], Iterable[Solo]],
) -> dict[str, str]:
    """Return the reason why each function cannot run by `mechanism`; empty if it can."""
    others = [name for name in folder.workflow.functions if name not in names]
    reasons = dict[str, str]()
    while left := [name for name in names if name not in reasons]:
        failures = dict.fromkeys((*others, *reasons), _SKIPPED)
        try:
            with alone(launch, folder, failures, mechanism=mechanism.name) as running:
                requests = {name: [b""] for name in left}
                for name, solo in running.solos(requests).items():
                    reasons[name] = _failure(inputs_of(solo), profiles[name])
        except ChironError as error:
            for name in set(error.functions) & set(left) or left:
                failures.setdefault(name, error)
        reasons |= {name: failures[name].message for name in left if name in failures}
    return reasons


def _failure(inputs: Iterable[Solo], profiles: Sequence[FunctionProfile]) -> str:
    latency_ms = max(each.latency_ms for each in profiles)
    limit_s = max(_LIMIT_S, _TIMES * latency_ms / 1000)
    try:
        for solo in inputs:
            solo.invoke(limit_s=limit_s)
    except FunctionFailedError as error:
        return error.message
    return ""
