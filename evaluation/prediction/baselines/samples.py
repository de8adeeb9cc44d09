"""What baselines learn from: how a plan divides its functions, and how long it took."""

from __future__ import annotations

from dataclasses import dataclass

from workflow.model import Workflow
from workflow.plan import Mechanism, Plan
from workflow.profile import FunctionProfile, Profile

#: The functions that run as the threads of one process, in the order in which they start.
Process = tuple[FunctionProfile, ...]


@dataclass(frozen=True)
class WrapShape:
    """What one wrap does in one stage; `remote` where another wrap has to call it."""

    cpus: int
    remote: bool
    processes: tuple[Process, ...]


@dataclass(frozen=True)
class Sample:
    """One measured plan, without the names of its tasks and functions.

    Attributes
    ----------
    stages
        The wraps of every stage, in the order in which they are called.
    measured_ms
        The median of its end-to-end latency.
    """

    workflow: str
    mechanism: Mechanism
    stages: tuple[tuple[WrapShape, ...], ...]
    measured_ms: float

    @property
    def structure(self) -> str:
        """How many threads every process of every wrap has, whatever they run."""
        sizes = [
            [(wrap.remote, sorted(map(len, wrap.processes))) for wrap in stage]
            for stage in self.stages
        ]
        return f"{self.workflow} {sizes}"

    @property
    def solo_ms(self) -> float:
        """The sum over the stages of their longest solo latency: no plan can be faster."""
        return sum(
            max(function.latency_ms for wrap in stage for p in wrap.processes for function in p)
            for stage in self.stages
        )


def sample_of(
    name: str, plan: Plan, workflow: Workflow, profile: Profile, measured_ms: float
) -> Sample:
    """The sample of a plan of all tasks of `workflow`, which is called `name` in tables."""
    stages = tuple(
        tuple(
            WrapShape(
                cpus=plan.wraps[index].cpus,
                remote=index > 0 or plan.called_by_client,
                processes=tuple(
                    tuple(profile.functions[workflow.function_of(task)] for task in process)
                    for process in part.processes
                ),
            )
            for index, part in plan.stage(number)
        )
        for number in range(len(workflow.stages))
    )
    return Sample(name, plan.mechanism, stages, measured_ms)
