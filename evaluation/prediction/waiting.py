"""Functions that mostly wait, each alone beside the plans.

What they wait for drifts in its own way, as it is a service somewhere: where that is on the same
machine it is slower when the machine is, and how much of a wait that concerns no profile knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median

from evaluation.apart import apart
from evaluation.bench.leftovers import Leftovers
from evaluation.bench.setup import Place
from evaluation.prediction.measured import AloneRun
from generator.measure import WARM_UP
from profiler.inputs import inputs_of, run_alone
from profiler.invocation import Invocation, Solo
from profiler.placing import alone
from profiler.reference_loop import steady
from profiler.solo import solo_plan, solo_workflow
from workflow.errors import ChironError
from workflow.folder import WorkflowFolder
from workflow.profile import Profile


def mostly_waiting(profile: Profile) -> tuple[str, ...]:
    """The functions that wait for more than half of their time."""
    return tuple(
        name
        for name, function in profile.functions.items()
        if function.time_ms("block") > function.latency_ms / 2
    )


@contextmanager
def deployed_alone(
    folder: WorkflowFolder, place: Place, functions: Sequence[str], leftovers: Leftovers
) -> Iterator[Mapping[str, Solo]]:
    """Each of `functions` in a wrap of its own, warm, with the input that it gets in the workflow.

    Raises
    ------
    ChironError
        What deploying and the functions raise.
    """
    if not functions:
        yield {}
        return
    failures: dict[str, ChironError] = {}
    with alone(place.launcher.launch, folder, failures) as everything:
        run = run_alone(folder.workflow, folder.payload(), everything.run, failures)
    inputs = inputs_of(folder.workflow, [run])
    for error in failures.values():
        raise error
    others = set(folder.workflow.functions) - set(functions)
    workflow = solo_workflow(folder.workflow, without=others)
    plan = apart(solo_plan(workflow), "alone")
    leftovers.note(wrap.name for wrap in plan.wraps)
    with place.launcher.launch(workflow, folder, plan) as placed:
        gateway = placed.gateway
        solos = {
            function: Solo(gateway, placed.trace_key, wrap, function, inputs[function])
            for function, wrap in zip(workflow.functions, placed.names, strict=True)
        }
        for solo in solos.values():
            for _ in range(WARM_UP):
                solo.invoke()
        yield solos


def typical(runs: Sequence[Invocation]) -> AloneRun:
    """What is typical of those `runs` in which the core kept its speed best."""
    counted = steady(runs, lambda run: run.pace.uneven)
    return AloneRun(
        latency_ms=round(median(run.latency_ms for run in counted), 4),
        loop_ms=round(median(run.pace.loop_ms for run in counted), 4),
    )
