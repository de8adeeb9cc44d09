"""Versions of a workflow side by side: their names, and which one serves, told by annotations.

The entry wrap keeps its name, which clients call. All wraps of a version have the version in
their names, the entry too until it is known to work: then the same image runs under the entry's
name, and calls the wraps of its own version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from generator.annotations import MODEL, ROLE, WORKFLOW, Promise, read_promise
from generator.generate import Sources
from generator.settings import client_timeout_s
from openfaas.client import Gateway
from openfaas.objects import FunctionStatus
from openfaas.stack import environment
from scheduler.layout import wrap_name
from services.deployment import DeploymentRequest
from workflow.documents import dump
from workflow.folder import WORKFLOW_FILE
from workflow.plan import Plan

#: The annotations of a version: its name, and what it was made from.
VERSION = "chiron.version"
SOURCE = "chiron.source"
#: The role of an entry wrap that is tried under its version's name.
CANDIDATE = "candidate"
_DIGITS = 8


@dataclass(frozen=True)
class Serving:
    """The version that serves, and what is deployed of others.

    Attributes
    ----------
    entry
        The function that clients call.
    others
        Functions of the workflow that the version does not need: older ones that drain, newer
        ones that are being tried, or what somebody who was interrupted has left.
    """

    entry: FunctionStatus
    others: tuple[FunctionStatus, ...]

    @property
    def version(self) -> str:
        """Its version; empty where `chiron deploy` deployed it."""
        return self.entry.annotations.get(VERSION, "")

    @property
    def promise(self) -> Promise | None:
        """What its plan promises."""
        return read_promise(self.entry.annotations)

    @property
    def since(self) -> datetime | None:
        """When it was deployed, where the gateway tells."""
        return datetime.fromisoformat(self.entry.created_at) if self.entry.created_at else None

    def is_wrap(self, name: str | None) -> bool:
        """Whether the wrap that calls itself `name` is its entry."""
        if self.version:
            workflow = self.entry.annotations[WORKFLOW]
            return name == entry_name(workflow, self.version)
        return name not in {function.name for function in self.others}

    @property
    def drain_s(self) -> float:
        """How long the others may still be called by requests that have begun, in seconds."""
        called = (f for f in self.others if f.annotations.get(ROLE) != CANDIDATE)
        return max((client_timeout_s(function.env_vars) for function in called), default=0.0)


def serving(gateway: Gateway, workflow: str, model: str) -> Serving | None:
    """The version of `workflow`, as `model`, that serves on `gateway`; None for none."""
    functions = [
        function
        for function in gateway.functions()
        if (function.annotations.get(WORKFLOW), function.annotations.get(MODEL))
        == (workflow, model)
    ]
    entry = next((f for f in functions if f.annotations.get(ROLE) == "entry"), None)
    if entry is None:
        return None
    version = entry.annotations.get(VERSION)
    others = (
        f
        for f in functions
        if f.annotations.get(VERSION) != version or f.annotations.get(ROLE) == CANDIDATE
    )
    return Serving(entry, tuple(others))


def named(plan: Plan, version: str) -> Plan:
    """`plan` with the version in the name of every wrap."""
    wraps = tuple(
        wrap.model_copy(update={"name": _name(plan.workflow, index, version)})
        for index, wrap in enumerate(plan.wraps)
    )
    return plan.model_copy(update={"wraps": wraps})


def entry_name(workflow: str, version: str) -> str:
    """The name of the entry wrap of a version."""
    return _name(workflow, 0, version)


def version_of(plan: Plan, source: str) -> str:
    """A short name for `plan` of the functions that `source` stands for."""
    return _digest([dump(plan), source])


def source_of(sources: Sources, request: DeploymentRequest) -> str:
    """A short name for what a user wrote and asked for: workflow, code, variables, choices."""
    workflow = (sources.folder.path / WORKFLOW_FILE).read_text()
    asked = [dump(request.choices), str(request.slo_ms), str(request.timeout_s)]
    return _digest([workflow, *asked, *_functions(sources)])


def _functions(sources: Sources) -> Iterator[str]:
    for name, handler in sorted(sources.handlers.items()):
        function = sources.stack.functions[name]
        variables = environment(function, sources.folder.path)
        yield json.dumps([name, handler.style, sorted(variables.items()), function.secrets])
        for file in sorted(handler.folder.rglob("*")):
            place = file.relative_to(handler.folder)
            if file.is_file() and not _left_behind(place):
                yield f"{place} {hashlib.sha256(file.read_bytes()).hexdigest()}"


def _left_behind(place: Path) -> bool:
    """Whether Python or a tool made the file, and not the user."""
    return place.suffix == ".pyc" or any(part.startswith(".") for part in place.parts)


def _digest(parts: list[str]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGITS]


def _name(workflow: str, index: int, version: str) -> str:
    return wrap_name(workflow, f"wrap{index + 1}-{version}")
