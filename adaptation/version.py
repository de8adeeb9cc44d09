"""Versions of a workflow side by side: which one serves, and a new one, deployed and checked.

The entry wrap keeps its name, which clients call. All wraps of a version have the version in
their names, the entry too until it is known to work. Then the same image runs under the entry's
name; or, where the provider would lose requests by that, the entry hands them on to it.
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

#: The annotation with the name of a version.
VERSION = "chiron.version"
#: The role of an entry wrap that is tried under its version's name.
CANDIDATE = "candidate"


@dataclass(frozen=True)
class Serving:
    """The version that serves, and what is deployed of others."""

    #: The function that clients call.
    called: FunctionStatus
    #: The version's entry wrap: the same one, or the one that it hands its requests on to.
    entry: FunctionStatus
    #: Functions of the workflow that the version does not need: older ones that drain, newer
    #: ones that are being tried, or what a watcher that was interrupted has left.
    others: tuple[FunctionStatus, ...]
    #: All functions that a request needs.
    wraps: tuple[FunctionStatus, ...] = ()

    @property
    def version(self) -> str:
        """Its version; empty where `chiron deploy` deployed it."""
        return self.entry.annotations.get(VERSION, "")

    @property
    def prediction(self) -> DeployedPrediction | None:
        """What was predicted of its plan."""
        return read_prediction(self.entry.annotations)

    @property
    def behind(self) -> str:
        """The wrap that the called one hands its requests on to; empty where it answers itself."""
        return "" if self.entry is self.called else self.entry.name

    def is_wrap(self, name: str | None) -> bool:
        """Whether the wrap that calls itself `name` is its entry."""
        if self.behind:
            return name == self.behind
        if self.version:
            return name == entry_name(self.entry.annotations[WORKFLOW], self.version)
        return name not in {function.name for function in self.others}

    @property
    def drain_s(self) -> float:
        """How long the others may still be called by requests that have begun, in seconds."""
        called = (f for f in self.others if f.annotations.get(ROLE) != CANDIDATE)
        return max((client_timeout_s(function.env_vars) for function in called), default=0.0)


def serving(gateway: Gateway, workflow: str, planner: str) -> Serving | None:
    """The version of `workflow`, as `planner`, that serves on `gateway`; None for none."""
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
    """`plan` with the version in the name of every wrap."""
    wraps = tuple(
        wrap.model_copy(update={"name": _name(plan.workflow, number, version)})
        for number, wrap in enumerate(plan.wraps, start=1)
    )
    return plan.model_copy(update={"wraps": wraps})


def entry_name(workflow: str, version: str) -> str:
    """The name of the entry wrap of a version."""
    return _name(workflow, 1, version)


def version_of(plan: Plan, marks: Mapping[str, str]) -> str:
    """A short name for `plan` of what `marks` stand for: `DeploymentRequest.marks`."""
    return digest([dump(plan), *marks.values()])


def _name(workflow: str, number: int, version: str) -> str:
    return wrap_name(workflow, f"wrap{number}-{version}")


@dataclass(frozen=True)
class Candidate:
    """A version that works, by its name `version`."""

    version: str
    #: How its entry wrap is to be deployed once it serves: with what connectors call it by.
    entry: FunctionSpec
    #: All functions that were deployed for it.
    created: list[str]
    #: What that took, until they answered, in seconds.
    ready_s: float
    #: What its answers took.
    measured: Measurement
    #: The functions in whose place its wraps are, by the names of these.
    before: Mapping[str, FunctionStatus] = field(default_factory=dict)
    #: What was set on those and is not kept, a line each.
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
    """`plan` deployed under names of its own; nothing of it stays where it does not work.

    Supporting functions of the workflow's stack.yaml belong to all versions: those that are
    missing are deployed, those that are there stay as they are, unless this is to `update` them.
    The deployable folder is generated in `out`. `check` invokes it. `trace_key` is that of the wrap
    that will hand requests on to it, if there is one. What others have set on the wraps of
    `current`, which serves, stays on those in their place.

    Raises what comes of generating, building and deploying, and what `check` raises.
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
        invoker_for(
            plan, workflow, gateway.url, sources.timeout_s(plan, request.timeout_s)
        ) as invoker,
    ):
        await_replicas(gateway, plan)
        measured = check(invoker)
    entry = spec_of(generated, plan.wraps[0].name, stack_file.parent)
    replaced = {function.name for function in before.values()}
    gone = [each for each in current.wraps if each.name not in replaced] if current else []
    lost = (*lost_change_warnings(made, before), *orphaned_change_warnings(gone))
    return Candidate(version, entry, created, ready_s, measured, before, lost)


def in_place_of(plan: Plan, version: str, current: Serving) -> dict[str, FunctionStatus]:
    """The names of the wraps of a new `version` -> the wraps of `current` with their numbers."""
    there = {function.name: function for function in current.wraps}
    found = dict[str, FunctionStatus]()
    for number, wrap in enumerate(plan.wraps, start=1):
        for name in (wrap.name, _name(plan.workflow, number, current.version)):
            if name in there:
                found.setdefault(_name(plan.workflow, number, version), there[name])
    return found


def _of_version(stack: StackFile, plan: Plan, present: Collection[str]) -> StackFile:
    """The wraps of `plan` in `stack`, its entry on trial, and the supporting functions missing.

    While the entry is tried no connector calls it: the version that serves is called.
    """
    wraps = {wrap.name for wrap in plan.wraps}
    functions = {n: f for n, f in stack.functions.items() if n in wraps or n not in present}
    entry = functions[plan.wraps[0].name]
    annotations = {**without_triggers(entry.annotations), ROLE: CANDIDATE}
    functions[plan.wraps[0].name] = entry.model_copy(update={"annotations": annotations})
    return stack.model_copy(update={"functions": functions})
