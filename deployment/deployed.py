"""The workflows that a gateway runs, by the annotations of its functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from itertools import groupby

from chiron.generator.annotations import (
    FOR_WRAPS,
    PLANNER,
    ROLE,
    WORKFLOW,
    DeployedPrediction,
    answering,
    read_called,
    read_functions,
    read_prediction,
)
from chiron.generator.fingerprint import DEFINITION
from chiron.openfaas.client import Gateway
from chiron.openfaas.objects import FunctionStatus
from chiron.workflow.documents import Document
from chiron.workflow.errors import ChironError
from chiron.workflow.names import shown


class DeployedWorkflow(Document):
    """A workflow as deployed by one planner.

    `functions` are its wraps, and `called` the separately deployed functions that they call. Other
    functions, used by its handlers, may exist. `calls` counts the calls by clients, as the gateway
    reports them.
    """

    workflow: str
    planner: str
    functions: tuple[str, ...]
    called: tuple[str, ...] = ()
    predicted: DeployedPrediction | None
    replicas: int
    available: int
    calls: float


class Deployments(Document):
    """All workflows of a gateway, by name."""

    deployments: tuple[DeployedWorkflow, ...]


def deployed(gateway: Gateway) -> Deployments:
    return Deployments(deployments=tuple(each for each, _ in with_functions(gateway)))


def with_functions(gateway: Gateway) -> list[tuple[DeployedWorkflow, list[FunctionStatus]]]:
    """Return the workflows that are deployed on `gateway`, each with the status of its wraps."""
    wraps = sorted(
        (f for f in gateway.functions() if WORKFLOW in f.annotations),
        key=lambda f: (*_identity(f), f.name),
    )
    groups = [(key, list(group)) for key, group in groupby(wraps, key=_identity)]
    return [(_deployed(gateway, *key, functions), functions) for key, functions in groups]


def wraps_of(gateway: Gateway, workflow: str, planner: str | None = None) -> tuple[str, ...]:
    """Return the wraps of `workflow`, deployed by `planner` or by any; raises ``not-deployed``."""
    everything = deployed(gateway).deployments
    found = [
        name
        for each in everything
        if each.workflow == workflow and planner in (None, each.planner)
        for name in each.functions
    ]
    if not found:
        raise not_deployed(gateway, workflow, planner, (each.workflow for each in everything))
    return tuple(found)


def not_deployed(
    gateway: Gateway, workflow: str, planner: str | None, others: Iterable[str]
) -> ChironError:
    """Return the error that `workflow` is not on `gateway`, which has workflows named `others`."""
    what = f"workflow {workflow}" + (f" as {planner}" if planner else "")
    there = ", ".join(dict.fromkeys(others)) or "none"
    message = f"{what} is not deployed on {gateway.url}: chiron deploy does that; deployed: {there}"
    return ChironError("not-deployed", message, status=404)


def check_member(gateway: Gateway, wraps: Collection[str], function: str) -> None:
    """Raise ``unknown-function``, listing the known, unless `wraps` run, call or are `function`."""
    running = [each for each in gateway.functions() if each.name in wraps]
    there = {name for wrap in running for name in read_functions(wrap)}
    there.update(_called_by(running))
    if function not in there.union(wraps):
        listed = ", ".join(sorted(there))
        message = f"function {shown(function)} is in no wrap of the workflow; there are: {listed}"
        raise ChironError("unknown-function", message, functions=[function], status=404)


def called_by(gateway: Gateway, wraps: Collection[str]) -> tuple[str, ...]:
    return _called_by(each for each in gateway.functions() if each.name in wraps)


def only_for(gateway: Gateway, wraps: Collection[str]) -> tuple[str, ...]:
    """Return the functions that were deployed for `wraps` and that no other wrap calls.

    Functions deployed before, or by somebody else, are not included.
    """
    functions = gateway.functions()
    called = _called_by(each for each in functions if each.name in wraps)
    others = _called_by(each for each in functions if each.name not in wraps)
    marked = {each.name for each in functions if FOR_WRAPS in each.annotations}
    return tuple(name for name in called if name in marked and name not in others)


def staying(gateway: Gateway) -> tuple[str, ...]:
    """Return the functions that were deployed beside workflows; none while a workflow is left."""
    functions = gateway.functions()
    if any(WORKFLOW in each.annotations for each in functions):
        return ()
    return tuple(each.name for each in functions if DEFINITION in each.annotations)


def _called_by(wraps: Iterable[FunctionStatus]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for each in wraps for name in read_called(each.annotations)))


def _identity(function: FunctionStatus) -> tuple[str, str]:
    return function.annotations[WORKFLOW], function.annotations.get(PLANNER, "")


def available(gateway: Gateway, function: FunctionStatus) -> int:
    """Return the number of ready replicas, which faasd's list leaves out."""
    if function.available_replicas or not function.replicas:
        return function.available_replicas
    with suppress(ChironError):
        return gateway.describe(function.name).available_replicas
    return 0  # it was removed meanwhile


def _deployed(
    gateway: Gateway, workflow: str, planner: str, functions: list[FunctionStatus]
) -> DeployedWorkflow:
    predictions = (read_prediction(answering(f, functions).annotations) for f in functions)
    called = (f for f in functions if f.annotations.get(ROLE) in ("entry", "task"))
    return DeployedWorkflow(
        workflow=workflow,
        planner=planner,
        functions=tuple(function.name for function in functions),
        called=_called_by(functions),
        predicted=next(filter(None, predictions), None),
        replicas=sum(function.replicas for function in functions),
        available=sum(available(gateway, function) for function in functions),
        calls=sum(function.invocation_count for function in called),
    )
