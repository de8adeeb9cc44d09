"""Why a plan is as it is, in lines that a person understands."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.options import Job
from workflow.plan import Plan

_MODELS = {
    "one-to-one": "every function has a sandbox of its own and the client calls them all",
    "sand": "one sandbox, every function is forked as a process of its own",
    "faastlane": "one sandbox, parallel functions are processes, sequential ones threads",
    "faastlane-t": "one process, every function is a thread",
    "faastlane+": "five processes in each sandbox",
    "pgp": "the fewest processes that meet the SLO, in the fewest wraps",
}


def explain(plan: Plan, job: Job) -> tuple[str, ...]:
    """The verdict on the SLO, the model's rule, and a line for every process of more than one."""
    lines = [_verdict(plan), f"{plan.model}: {_MODELS[plan.model]}"]
    for wrap in plan.wraps:
        for stage in wrap.stages:
            for number, process in enumerate(stage.processes, start=1):
                if len(process) > 1:
                    where = f"{wrap.name}, stage {stage.stage + 1}, process {number}"
                    lines.append(f"{where}: {_shared(process, plan, job)}")
    return tuple(lines)


def _verdict(plan: Plan) -> str:
    if plan.predicted is None or plan.slo_ms is None:
        return "not predicted"
    latency = f"predicted {plan.predicted.latency_ms:.1f} ms"
    if plan.meets_slo:
        return f"{latency}, within the SLO of {plan.slo_ms:g} ms"
    if plan.model == "pgp":
        return f"{latency} is the best found; an SLO of {plan.slo_ms:g} ms is out of reach"
    return f"{latency}, over the SLO of {plan.slo_ms:g} ms"


def _shared(process: Sequence[str], plan: Plan, job: Job) -> str:
    workflow, profile, platform = job.workflow, job.profile, job.platform
    functions = [workflow.function_of(task) for task in process]
    names = list(dict.fromkeys(functions))
    listed = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    gil_ms = sum(profile.functions[f].time_ms("cpu") for f in functions)
    alone = (
        f"a process of its own would cost each a fork of {platform.process_startup_ms:.1f} ms"
        if plan.mechanism == "fork"
        else f"a worker of its own would cost each a CPU and {platform.pool_dispatch_ms:.1f} ms"
    )
    return f"{listed} ({len(process)} tasks) share {gil_ms:.1f} ms of GIL; {alone}"
