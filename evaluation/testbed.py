"""Reads a published testbed: profiles, workflows, and measured deployments as one wrap each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field

from chiron.workflow.documents import Document, parse_json, read_document, read_json, validate
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import parse_workflow
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Plan, Wrap
from chiron.workflow.platform import Platform
from chiron.workflow.profile import FunctionProfile, Milliseconds, Period, PeriodKind, Profile

#: The constants of the published testbed; `docs/prediction.md` says where each comes from.
PLATFORM = Path(__file__).parent / "data" / "testbed_platform.json"

#: Functions that compute with the GIL released, which a trace of system calls cannot see.
_NATIVE = ("pbkdf2",)
#: Gaps that are shorter are rounding.
_SHORTEST_MS = 1e-6


class _Block(Document):
    syscall: str
    start_ms: Milliseconds
    duration_ms: Milliseconds


class _Function(Document):
    latency_ms: Milliseconds
    block_periods: tuple[_Block, ...]


class MeasuredRow(Document):
    """One deployment: the tasks of every process of every stage, measured and as published."""

    stages: tuple[tuple[tuple[str, ...], ...], ...]
    measured_ms: Annotated[float, Field(gt=0)]
    artifact_predicted_ms: Milliseconds

    def plan(self, workflow: Workflow, cpus: int) -> Plan:
        """The deployment as a plan of one wrap, which forked further processes in every stage."""
        main = tuple(task for stage in self.stages for task in stage[0])
        wrap = Wrap(
            name="wrap1",
            cpus=cpus,
            memory_mib=1,
            mechanism="fork",
            processes=(main, *(process for stage in self.stages for process in stage[1:])),
        )
        plan = Plan(
            format=2,
            workflow=workflow.name,
            planner="pgp",
            trigger="stage",
            wraps=(wrap,),
            cpus=cpus,
        )
        plan.check_against(workflow)
        return plan


def read_platform() -> Platform:
    """The constants of the published testbed."""
    return read_document(Platform, PLATFORM, "platform")


def read_profile(folder: Path) -> Profile:
    """The profiles of all functions in ``profiles.json``."""
    path = folder / "profiles.json"
    known = read_json(path, "profiles")
    if not isinstance(known, dict):
        raise ChironError("bad-document", f"profiles {path} has to be an object")
    functions = {
        name: _profile(
            validate(_Function, value, f"{name} in {path}"), "native" if name in _NATIVE else "cpu"
        )
        for name, value in known.items()
    }
    return Profile(format=1, workflow=folder.name, functions=functions)


def read_measured(folder: Path) -> Iterator[tuple[str, Workflow, list[MeasuredRow]]]:
    """The name of every workflow that was measured, the workflow, and its rows.

    Raises ``missing-file`` where nothing was measured or its workflow is missing.
    """
    files = sorted(folder.glob("*.measured.jsonl"))
    if not files:
        raise ChironError("missing-file", f"{folder} has no NAME.measured.jsonl: name a testbed")
    for file in files:
        name = file.name.removesuffix(".measured.jsonl")
        workflow = parse_workflow(read_json(folder / f"{name}.workflow.json", "workflow"))
        yield name, workflow, list(_rows(file))


def _rows(file: Path) -> Iterator[MeasuredRow]:
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        what = f"line {number} of {file}"
        yield validate(MeasuredRow, parse_json(line, what), what)


def _profile(function: _Function, computing: PeriodKind) -> FunctionProfile:
    periods = tuple(_periods(function, computing))
    return FunctionProfile(latency_ms=function.latency_ms, periods=periods)


def _periods(function: _Function, computing: PeriodKind) -> Iterator[Period]:
    """Blocks, cut where they overlap, and computing between them."""
    end_ms = 0.0
    for block in function.block_periods:
        start_ms = max(end_ms, min(block.start_ms, function.latency_ms))
        if start_ms - end_ms > _SHORTEST_MS:
            yield Period(kind=computing, start_ms=end_ms, duration_ms=start_ms - end_ms)
        duration_ms = min(block.duration_ms, function.latency_ms - start_ms)
        yield Period(
            kind="block", start_ms=start_ms, duration_ms=duration_ms, syscall=block.syscall
        )
        end_ms = start_ms + duration_ms
    if function.latency_ms - end_ms > _SHORTEST_MS:
        yield Period(kind=computing, start_ms=end_ms, duration_ms=function.latency_ms - end_ms)
