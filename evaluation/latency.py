"""Compares deployment models on one workflow: predicted and measured latency, CPUs, memory.

All models are deployed at once on one gateway and invoked in turn, so that the machine's drift
meets all of them alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import islice

from evaluation.apart import apart
from generator.generate import Sources
from generator.launcher import Deployment, Launcher
from generator.measure import WARM_UP, Measurement, checked_invoke
from generator.reference import reference
from scheduler.schedule import schedule
from workflow.documents import Document
from workflow.folder import WorkflowFolder
from workflow.plan import Mechanism, Model, Plan
from workflow.platform import Platform
from workflow.profile import Profile

Progress = Callable[[str], None]


class ModelRow(Document):
    """One deployment model: its plan, what it takes, and how long requests took."""

    plan: Plan
    processes: int
    measured: Measurement
    memory_mib: float
    slo_met: bool

    @property
    def prediction_error(self) -> float:
        """(P̂ - P) / P of the medians (Chiron §6.1)."""
        predicted = self.plan.predicted.latency_ms if self.plan.predicted else 0.0
        return (predicted - self.measured.p50_ms) / self.measured.p50_ms


class Comparison(Document):
    """All models of one workflow, measured in turn in one run."""

    format: int = 1
    workflow: str
    mechanism: Mechanism
    slo_ms: float
    platform: Platform
    rows: tuple[ModelRow, ...]


def compare_models(
    folder: WorkflowFolder,
    launcher: Launcher,
    profile: Profile,
    platform: Platform,
    *,
    slo_ms: float,
    models: Sequence[Model],
    mechanism: Mechanism,
    samples: int,
    progress: Progress,
) -> Comparison:
    """Deploy a plan of every model side by side and measure them interleaved.

    Raises
    ------
    ChironError
        ``wrong-output`` where a deployment answers other than the reference executor.
    """
    workflow, body = folder.workflow, folder.payload()
    plans = [
        schedule(workflow, profile, platform, slo_ms, model=model, mechanism=mechanism)
        for model in models
    ]
    with ExitStack() as stack:
        deployments = []
        for plan in plans:
            progress(f"deploying {plan.model}: {len(plan.wraps)} wraps")
            launch = launcher.launch(workflow, folder, apart(plan))
            deployments.append(stack.enter_context(launch))
        expected = reference(Sources.read(folder), body, launcher.gateway.url).output
        progress(f"invoking each {WARM_UP + samples} times, in turn")
        latencies = _interleaved(deployments, body, expected, samples)
        memory = [_memory_mib(deployment) for deployment in deployments]
    rows = [
        _row(plan, slo_ms, Measurement.of(row), mib)
        for plan, row, mib in zip(plans, latencies, memory, strict=True)
    ]
    return Comparison(
        workflow=workflow.name,
        mechanism=mechanism,
        slo_ms=slo_ms,
        platform=platform,
        rows=tuple(rows),
    )


def _interleaved(
    deployments: Sequence[Deployment], body: bytes, expected: str, samples: int
) -> list[list[float]]:
    """Latencies of every deployment; each round starts with another one."""
    latencies: list[list[float]] = [[] for _ in deployments]
    count = len(deployments)
    for number in range(WARM_UP + samples):
        for turn in range(count):
            index = (number + turn) % count
            latencies[index].append(checked_invoke(deployments[index], body, expected))
    return [list(islice(row, WARM_UP, None)) for row in latencies]


def _memory_mib(deployment: Deployment) -> float:
    """Memory of all wraps of a deployment, as the gateway tells it."""
    usages = (deployment.gateway.describe(name).usage for name in deployment.names)
    return sum(usage.total_memory_bytes for usage in usages if usage) / 2**20


def _row(plan: Plan, slo_ms: float, measured: Measurement, memory_mib: float) -> ModelRow:
    return ModelRow(
        plan=plan,
        processes=sum(max(len(s.processes) for s in wrap.stages) for wrap in plan.wraps),
        measured=measured,
        memory_mib=round(memory_mib, 1),
        slo_met=measured.p95_ms <= slo_ms,
    )
