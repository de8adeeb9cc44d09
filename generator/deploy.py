"""Deploys a generated folder through OpenFaaS's REST API: all of it, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from generator.annotations import MODEL, WORKFLOW
from generator.unchanged import unchanged
from openfaas.client import Gateway
from openfaas.stack import StackFile, deployment, read_stack
from workflow.errors import ChironError

#: Builds (and pushes) the images of a stack.yaml, so that the gateway can start them.
Builder = Callable[[Path], None]

_READY_TIMEOUT_S = 60.0
_PARALLEL = 8


def deploy_stack(gateway: Gateway, stack_file: Path) -> list[str]:
    """Deploy the functions of a generated stack.yaml and wait until they answer.

    Supporting functions that run unchanged are left alone. Where something fails, what was created
    here is removed again.

    Returns
    -------
    list of str
        The functions that were created and not merely updated.
    """
    stack = read_stack(stack_file, {})
    existing = {function.name: function for function in gateway.functions()}
    created: list[str] = []
    try:
        for name in stack.functions:
            spec = deployment(stack, name, stack_file.parent)
            if unchanged(spec, existing):
                continue
            if name not in existing:
                created.append(name)  # before the call: one that times out may still create it
            gateway.deploy(spec)
        with ThreadPoolExecutor(_PARALLEL) as threads:
            list(threads.map(lambda n: gateway.wait_ready(n, _READY_TIMEOUT_S), stack.functions))
    except BaseException:
        with suppress(ChironError):  # the first error is the one that tells what is wrong
            remove_all(gateway, created)
        raise
    return created


def remove_outdated(gateway: Gateway, stack_file: Path) -> None:
    """Remove wraps of the stack's workflow and model that the stack no longer has.

    They are what an earlier plan needed and this one does not.
    """
    remove_all(gateway, _outdated(gateway, read_stack(stack_file, {})))


def remove_all(gateway: Gateway, names: list[str]) -> None:
    """Remove those of `names` that are deployed; one that cannot be does not keep the others."""
    deployed = {function.name for function in gateway.functions()} if names else set()
    failures = []
    for name in names:
        try:
            if name in deployed:
                gateway.remove(name)
        except ChironError as error:
            if error.code != "not-found":  # somebody else removed it meanwhile
                failures.append(error)
    if failures:
        raise failures[0]


def _outdated(gateway: Gateway, stack: StackFile) -> list[str]:
    """Wraps of the stack's workflow and model that the stack no longer has."""
    current = {_identity(function.annotations) for function in stack.functions.values()}
    return [
        function.name
        for function in gateway.functions()
        if WORKFLOW in function.annotations
        and _identity(function.annotations) in current
        and function.name not in stack.functions
    ]


def _identity(annotations: Mapping[str, str]) -> tuple[str | None, str | None]:
    return annotations.get(WORKFLOW), annotations.get(MODEL)
