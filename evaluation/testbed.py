"""Reads a published testbed: profiles, workflows, and measured deployments, each as one wrap."""

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

#: The constants of the published testbed; `docs/prediction.md` has the source of each.
PLATFORM = Path(__file__).parent / "data" / "testbed_platform.json"

#: Functions that compute with the GIL released: a trace of system calls does not show this.
_NATIVE = ("pbkdf2",)
#: The shortest gap between blocks that is not a rounding error.
_SHORTEST_MS = 1e-6


class _Block(Document):
    syscall: str
    start_ms: Milliseconds
    duration_ms: Milliseconds


class _Function(Document):
    latency_ms: Milliseconds
    block_periods: tuple[_Block, ...]


class MeasuredRow(Document):
    """One deployment: the tasks by stage and process, the measured and the published prediction."""

    stages: tuple[tuple[tuple[str, ...], ...], ...]
    measured_ms: Annotated[float, Field(gt=0)]
    artifact_predicted_ms: Milliseconds

    def plan(self, workflow: Workflow, cpus: int) -> Plan:
        """Return the deployment as a plan of one wrap, which forks processes in every stage."""
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
    """Return the constants of the published testbed."""
    return read_document(Platform, PLATFORM, "platform")


def read_profile(folder: Path) -> Profile:
    """Return the profiles of all functions in ``profiles.json`` of `folder`."""
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
    """Yield the name of every measured workflow, the workflow, and its rows.

    Raises ``missing-file`` if nothing was measured, or a workflow's file is missing.
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
    """Yield the blocks, without their overlaps, and the computing between them."""
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
