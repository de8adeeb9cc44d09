"""Deploys a generated folder through OpenFaaS's REST API: all of it, or nothing."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from chiron.deployment.postmortem import explain_failures, keep_logs
from chiron.generator.annotations import FOR_WRAPS, WORKFLOW, identity
from chiron.generator.fingerprint import unchanged
from chiron.generator.generate import Sources, check_names
from chiron.generator.wrap_entry import WRAP
from chiron.openfaas.client import Gateway
from chiron.openfaas.handler_folder import STYLES
from chiron.openfaas.objects import FunctionSpec, FunctionStatus
from chiron.openfaas.readiness import wait_ready
from chiron.openfaas.stack import StackFile, deployment, read_stack
from chiron.openfaas.store_function import SECRET
from chiron.scheduler.planners import first_names
from chiron.workflow.errors import ChironError
from chiron.workflow.tracing import KEY_VARIABLE, trace_header

#: Reports a step of a long command, as one line.
Progress = Callable[[str], None]
#: The workflow and the planner of a function; None for a function of no workflow.
Owner = tuple[str | None, str | None]
#: Builds (and pushes) the images of a stack.yaml, so that the gateway can start them.
Builder = Callable[[Path], None]

#: The secret by which wraps, and replicas of a wrap, prove that they are of one deployment.
_DIRECT_SECRET = "chiron-direct"  # noqa: S105 (its name)
_READY_TIMEOUT_S = 60.0
_PARALLEL = 8
#: Retries of a failed removal, and the pause before each in seconds. On faasd the first removal
#: fails if a function takes more than 30 s to end: faasd then kills it.
_FURTHER_REMOVALS, _PAUSE_S = 2, 1.0


def deploy_stack(gateway: Gateway, stack_file: Path, store_password: str = "") -> list[str]:
    """Deploy the functions of a generated stack.yaml and wait until they are ready.

    Unchanged supporting functions are left alone. Supporting functions that somebody else deployed
    are not marked for removal with the wraps that call them. The gateway stores `store_password`
    for wraps that need it; if it is empty, the gateway must have it already. On an error, the
    functions created here are removed. Returns the functions that were created, not those updated.

    Raises ``name-taken`` if a deployed function of the same name belongs elsewhere.
    """
    stack, existing = read_stack(stack_file, {}), _existing(gateway)
    _check_owners(_owners(stack, stack.functions), existing)
    created: list[str] = []
    with removed_on_failure(gateway, created):
        # New functions are ready before the existing functions, which will call them, are replaced.
        new = [name for name in stack.functions if name not in existing]
        for names in (new, [name for name in stack.functions if name in existing]):
            asking_for = dict[str, dict[str, str]]()
            for name in names:
                spec = spec_of(stack, name, stack_file.parent)
                is_wrap = stack.functions[name].lang == WRAP
                if is_wrap and _DIRECT_SECRET in spec.secrets:
                    gateway.ensure_secret(_DIRECT_SECRET, spec.namespace)
                if store_password and is_wrap and SECRET in spec.secrets:
                    gateway.ensure_secret(SECRET, spec.namespace, store_password)
                if unchanged(spec, existing):
                    continue
                if name in existing and FOR_WRAPS not in existing[name].annotations:
                    kept = {k: v for k, v in spec.annotations.items() if k != FOR_WRAPS}
                    spec = spec.model_copy(update={"annotations": kept})
                if is_wrap:
                    asking_for[name] = trace_header(spec.env_vars[KEY_VARIABLE])
                if name in new:
                    created.append(name)  # before the call: a timed-out call may still create it
                _finished(gateway.deploy, spec)
            for name in names:  # they start in parallel, whatever the order of waiting
                ours = stack.functions[name].lang in (WRAP, *STYLES)  # no handler gets OPTIONS
                key = asking_for.get(name)
                wait_ready(gateway, name, _READY_TIMEOUT_S, key, answers_options=ours)
    return created


def require_own_names(gateway: Gateway, stack_file: Path) -> None:
    """Raise ``name-taken`` as `deploy_stack` does, before the images are built."""
    stack = read_stack(stack_file, {})
    _check_owners(_owners(stack, stack.functions), _existing(gateway))


def require_planned_names(gateway: Gateway, sources: Sources, planner: str) -> None:
    """Raise ``name-taken`` for a function that every plan of `planner` deploys.

    No profile is needed. Names that depend on the plan are checked once it is made.
    """
    workflow = sources.folder.workflow
    wraps = first_names(planner, workflow)
    check_names(wraps, sources)
    owners = _owners(sources.stack, sources.supporting)
    owners |= dict.fromkeys(wraps, (workflow.name, planner))
    _check_owners(owners, _existing(gateway))


def _existing(gateway: Gateway) -> dict[str, FunctionStatus]:
    return {function.name: function for function in gateway.functions()}


def _owners(stack: StackFile, names: Iterable[str]) -> dict[str, Owner]:
    return {name: identity(stack.functions[name].annotations) for name in names}


def _check_owners(owners: Mapping[str, Owner], existing: Mapping[str, FunctionStatus]) -> None:
    """Raise ``name-taken`` if a function in `owners` exists with another owner.

    A function of no workflow belongs to somebody else too.
    """
    for name, ours in owners.items():
        if name not in existing:
            continue
        workflow, planner = theirs = identity(existing[name].annotations)
        if theirs == ours:
            continue
        mend = shlex.join(["faas-cli", "remove", name])
        whose = "of no workflow"
        if workflow:
            mend = shlex.join(["chiron", "remove", workflow, "--planner", planner or ""])
            whose = f"of workflow {workflow} as {planner}"
        rename = f"workflow {ours[0]}" if ours[0] else f"function {name}"
        message = f"function {name} is deployed already, {whose}: run {mend}, or rename {rename}"
        raise ChironError("name-taken", message, functions=(name,), status=409)


def spec_of(stack: StackFile, name: str, folder: Path) -> FunctionSpec:
    """Return the specification with which `deploy_stack` deploys the function `name`."""
    spec = deployment(stack, name, folder)
    wraps = [each for each, function in stack.functions.items() if function.lang == WRAP]
    others = len(wraps) > 1 or "pool_concurrency" in spec.env_vars  # replicas help each other
    if name in wraps and others:
        own = dict.fromkeys([*spec.secrets, _DIRECT_SECRET])
        return spec.model_copy(update={"secrets": tuple(own)})
    return spec


@contextmanager
def removed_on_failure(gateway: Gateway, created: Sequence[str]) -> Iterator[None]:
    """If the block fails, remove the functions `created`, and name their logs in the error."""
    try:
        with explain_failures(gateway):
            yield
    except BaseException as error:
        if isinstance(error, ChironError):
            keep_logs(gateway, created, error)
        try:
            remove_all(gateway, created)
        except ChironError as kept:  # the first error is the cause
            tell = error.add if isinstance(error, ChironError) else error.add_note
            tell(kept.message)
        raise


def remove_outdated(gateway: Gateway, stack_file: Path) -> None:
    """Remove wraps of an earlier plan of the stack's workflow and planner."""
    stack = read_stack(stack_file, {})
    current = {identity(function.annotations) for function in stack.functions.values()}
    outdated = [
        function.name
        for function in gateway.functions()
        if WORKFLOW in function.annotations
        and identity(function.annotations) in current
        and function.name not in stack.functions
    ]
    remove_all(gateway, outdated)


def remove_all(gateway: Gateway, names: Sequence[str]) -> None:
    """Remove the deployed functions among `names`; one that fails does not stop the others.

    Retries failed removals. An interruption takes effect after the removals.

    Raises the gateway's error, with the functions that stay and the command that removes them.
    """
    _finished(_remove, gateway, names)


def _finished(call: Callable[..., None], *arguments: object) -> None:
    """Do `call` to its end: an interruption, which could leave functions, takes effect later."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(int).result()  # a thread that is still starting would not be awaited
        thread.submit(call, *arguments).result()


def _remove(gateway: Gateway, names: Sequence[str]) -> None:
    failures = _tried_to_remove(gateway, names)
    for _ in range(_FURTHER_REMOVALS):
        if failures:
            time.sleep(_PAUSE_S)
            failures = _tried_to_remove(gateway, list(failures))
    if failures:
        error = next(iter(failures.values()))
        lines = " && ".join(f"faas-cli remove -g {gateway.url} {name}" for name in failures)
        error.add(f"not removed: {', '.join(failures)}; remove with {lines}")
        raise error


def _tried_to_remove(gateway: Gateway, names: Sequence[str]) -> dict[str, ChironError]:
    """Return the errors of those of `names` that could not be removed."""
    try:
        deployed = {function.name for function in gateway.functions()} if names else set()
    except ChironError as error:
        return dict.fromkeys(names, error)
    there = [name for name in names if name in deployed]
    with ThreadPoolExecutor(_PARALLEL) as threads:
        failures = list(threads.map(partial(_removal_failure, gateway), there))
    return {name: error for name, error in zip(there, failures, strict=True) if error}


def _removal_failure(gateway: Gateway, name: str) -> ChironError | None:
    try:
        gateway.remove(name)
    except ChironError as error:
        return None if error.code == "not-found" else error  # somebody else removed it meanwhile
    return None
