"""Versions of a workflow side by side: the serving version, and a new version that is checked.

The entry wrap keeps the name that clients call. All wraps of a version have the version in their
names, the entry too while it is on trial. Then the same image runs under the entry's name. If the
provider would lose requests by that, the entry forwards requests to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from chiron.deployment.deploy import removed_on_failure, spec_of
from chiron.deployment.invoke import Invoker
from chiron.deployment.keeping import (
    keep_all_changes,
    lost_change_warnings,
    orphaned_change_warnings,
)
from chiron.deployment.launcher import Launcher, invoker_for
from chiron.deployment.measure import Measurement
from chiron.deployment.replicas import await_replicas
from chiron.generator.annotations import (
    ROLE,
    WORKFLOW,
    DeployedPrediction,
    answering,
    identity,
    read_prediction,
)
from chiron.generator.fingerprint import digest
from chiron.generator.generate import Sources, generate
from chiron.generator.settings import client_timeout_s
from chiron.openfaas.client import Gateway
from chiron.openfaas.objects import FunctionSpec, FunctionStatus
from chiron.openfaas.sharing import without_triggers
from chiron.openfaas.stack import StackFile, read_stack, write_stack
from chiron.pipeline.deploy import DeploymentRequest
from chiron.scheduler.layout import wrap_name
from chiron.workflow.documents import dump
from chiron.workflow.plan import Plan

VERSION = "chiron.version"
#: The role of an entry wrap on trial under its version's name.
CANDIDATE = "candidate"


@dataclass(frozen=True)
class Serving:
    """The serving version, and the deployed functions of other versions."""

    #: The function that clients call.
    called: FunctionStatus
    #: The version's entry wrap: the called function, or the wrap to which that forwards.
    entry: FunctionStatus
    #: Functions of the workflow that the version does not need: older functions that drain, newer
    #: functions on trial, or the rest of an interrupted watcher.
    others: tuple[FunctionStatus, ...]
    #: All functions that a request needs.
    wraps: tuple[FunctionStatus, ...] = ()

    @property
    def version(self) -> str:
        """The version; empty if `chiron deploy` deployed it."""
        return self.entry.annotations.get(VERSION, "")

    @property
    def prediction(self) -> DeployedPrediction | None:
        return read_prediction(self.entry.annotations)

    @property
    def behind(self) -> str:
        """The wrap to which the called function forwards; empty if that answers itself."""
        return "" if self.entry is self.called else self.entry.name

    def is_wrap(self, name: str | None) -> bool:
        """Return whether `name`, as a wrap reports it, is the name of its entry."""
        if self.behind:
            return name == self.behind
        if self.version:
            return name == entry_name(self.entry.annotations[WORKFLOW], self.version)
        return name not in {function.name for function in self.others}

    @property
    def drain_s(self) -> float:
        """How long requests that have begun may still call the other functions, in seconds."""
        called = (f for f in self.others if f.annotations.get(ROLE) != CANDIDATE)
        return max((client_timeout_s(function.env_vars) for function in called), default=0.0)


def serving(gateway: Gateway, workflow: str, planner: str) -> Serving | None:
    """Return the version of `workflow` by `planner` that serves on `gateway`, or None."""
    functions = [
        function
        for function in gateway.functions()
        if identity(function.annotations) == (workflow, planner)
    ]
    called = next((f for f in functions if f.annotations.get(ROLE) == "entry"), None)
    if called is None:
        return None
    entry = answering(called, functions)
    version = entry.annotations.get(VERSION)
    wraps = tuple(
        f
        for f in functions
        if f is called
        or (f.annotations.get(VERSION) == version and f.annotations.get(ROLE) != CANDIDATE)
    )
    return Serving(called, entry, tuple(f for f in functions if f not in wraps), wraps)


def named(plan: Plan, version: str) -> Plan:
    """Return `plan` with the version in the name of every wrap."""
    wraps = tuple(
        wrap.model_copy(update={"name": _name(plan.workflow, number, version)})
        for number, wrap in enumerate(plan.wraps, start=1)
    )
    return plan.model_copy(update={"wraps": wraps})


def entry_name(workflow: str, version: str) -> str:
    return _name(workflow, 1, version)


def version_of(plan: Plan, marks: Mapping[str, str]) -> str:
    """Return a short name for `plan` and the `DeploymentRequest.marks` of its sources."""
    return digest([dump(plan), *marks.values()])


def _name(workflow: str, number: int, version: str) -> str:
    return wrap_name(workflow, f"wrap{number}-{version}")


@dataclass(frozen=True)
class Candidate:
    """A version that works; `version` is its name."""

    version: str
    #: Its entry wrap's deployment once it serves, with the triggers of connectors.
    entry: FunctionSpec
    #: All functions that were deployed for it.
    created: list[str]
    #: The time from its deployment until its functions answered, in seconds.
    ready_s: float
    #: The latencies of its answers.
    measured: Measurement
    #: The functions that its wraps replace, by the names of its wraps.
    before: Mapping[str, FunctionStatus] = field(default_factory=dict)
    #: Users' settings of the replaced functions that are not kept, a line each.
    lost: tuple[str, ...] = ()


def deploy_beside(
    launcher: Launcher,
    plan: Plan,
    sources: Sources,
    request: DeploymentRequest,
    out: Path,
    check: Callable[[Invoker], Measurement],
    trace_key: str | None = None,
    *,
    current: Serving | None = None,
    update: bool = False,
) -> Candidate:
    """Deploy `plan` under names of its own; remove all of it if it does not work.

    Supporting functions of the workflow's stack.yaml belong to all versions. Missing functions are
    deployed; existing functions stay unchanged unless `update` is set. The deployable folder is
    generated in `out`. `check` invokes the version. `trace_key` is the key of the wrap that will
    forward requests to it, if any. Settings that users made on the wraps of the serving `current`
    are kept.

    Raises the errors of generating, building, deploying, and of `check`.
    """
    gateway = launcher.gateway
    marks = request.marks(sources)
    version = version_of(plan, marks)
    before = in_place_of(plan, version, current) if current else {}
    plan = named(plan, version)
    marks = {**marks, VERSION: version}
    stack_file = generate(plan, sources, out, request.timeout_s, trace_key, marks)
    present = set() if update else {function.name for function in gateway.functions()}
    made = read_stack(stack_file, {})
    generated = keep_all_changes(made, before)
    stack = _of_version(generated, plan, present)
    write_stack(stack_file, stack)
    launcher.build(stack_file)
    began = time.monotonic()
    created = launcher.deploy(stack_file)
    ready_s = time.monotonic() - began
    workflow = request.folder.workflow
    with (
        removed_on_failure(gateway, created),
        invoker_for(plan, workflow, gateway, sources.timeout_s(plan, request.timeout_s)) as invoker,
    ):
        await_replicas(gateway, plan)
        measured = check(invoker)
    entry = spec_of(generated, plan.wraps[0].name, stack_file.parent)
    replaced = {function.name for function in before.values()}
    gone = [each for each in current.wraps if each.name not in replaced] if current else []
    lost = (*lost_change_warnings(made, before), *orphaned_change_warnings(gone))
    return Candidate(version, entry, created, ready_s, measured, before, lost)


def in_place_of(plan: Plan, version: str, current: Serving) -> dict[str, FunctionStatus]:
    """Return the wraps of `current` by the names of the wraps that replace them in `version`."""
    there = {function.name: function for function in current.wraps}
    found = dict[str, FunctionStatus]()
    for number, wrap in enumerate(plan.wraps, start=1):
        for name in (wrap.name, _name(plan.workflow, number, current.version)):
            if name in there:
                found.setdefault(_name(plan.workflow, number, version), there[name])
    return found


def _of_version(stack: StackFile, plan: Plan, present: Collection[str]) -> StackFile:
    """Return the wraps of `plan` in `stack`, its entry on trial, and missing supporting functions.

    While the entry is on trial, connectors call the serving version.
    """
    wraps = {wrap.name for wrap in plan.wraps}
    functions = {n: f for n, f in stack.functions.items() if n in wraps or n not in present}
    entry = functions[plan.wraps[0].name]
    annotations = {**without_triggers(entry.annotations), ROLE: CANDIDATE}
    functions[plan.wraps[0].name] = entry.model_copy(update={"annotations": annotations})
    return stack.model_copy(update={"functions": functions})
