"""The reasons for a plan, in lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from chiron.predictor.emissions import expanded, known_with
from chiron.predictor.forked import wrongly_forked
from chiron.predictor.mechanisms import mechanism_of
from chiron.predictor.paths import Crossing, crossings, way_of
from chiron.predictor.unrolling import run_of
from chiron.predictor.waits import waits_of
from chiron.scheduler.chance import chance, in_words
from chiron.scheduler.choices import Strategy
from chiron.scheduler.limits import Limits, exceeded
from chiron.scheduler.options import Job
from chiron.scheduler.planners import PLANNERS, respects_conflicts, searched
from chiron.workflow.apart import Apart, broken
from chiron.workflow.model import Workflow
from chiron.workflow.paths import IN_WORDS
from chiron.workflow.plan import Plan, Wrap
from chiron.wrap.core.triggers import TASK_TRIGGERS

_STRATEGIES: dict[Strategy, str] = {
    "cost": "the fewest CPUs that meet the SLO, in the fewest wraps",
    "balanced": "the least CPUs x latency that meets the SLO",
    "latency": "the fastest found, whatever it costs",
}
#: The most lines about processes, or about conflicts; further lines are counted.
_MOST_LINES = 12
#: The most functions that a line names; further functions are counted.
_MOST_NAMES = 4


def explain(
    plan: Plan, job: Job, strategy: Strategy = "cost", fewer_ms: float | None = None
) -> tuple[str, ...]:
    """Return the verdict, the rule, and lines for wraps, processes, conflicts, secrets and limits.

    `fewer_ms` is a lower bound of the latency with one CPU less, if stages are barriers. It is None
    unless the search tried that in vain.
    """
    lines = [_verdict(plan, job), *_payloads(plan), f"{plan.planner}: {_rule(plan, strategy)}"]
    if fewer_ms is not None and plan.slo_ms is not None:
        proved = f"one less takes {fewer_ms:.1f} ms at the very least, as all have to compute"
        found = "of the plans found with one less, none meets the SLO"
        added_up = TASK_TRIGGERS[plan.trigger].in_stages or len(job.workflow.stages) == 1
        sure = added_up and fewer_ms > plan.slo_ms
        lines.append(f"{plan.cpus} CPUs: {proved if sure else found}")
    lines += _wraps(plan, job)
    lines += _some(list(_crossings(plan, job)), "pairs of wraps")
    lines += _some(list(_processes(plan, job)), "processes")
    lines += _some(_conflicts(plan, job), "conflicts")
    lines += wrongly_forked(plan, job.workflow)
    lines += (each.line for each in waits_of(job.workflow))
    lines += _widened_secrets(plan, job)
    if not job.platform.work_variation:
        name = job.platform.name
        lines.append(
            f"platform {name} does not tell how requests with one payload vary, so they are "
            "predicted to be alike: calibrate again"
        )
    return (*lines, *exceeded(plan, job.limits))


def _rule(plan: Plan, strategy: Strategy) -> str:
    if not searched(plan.planner):
        return PLANNERS[plan.planner].rule
    return _STRATEGIES[strategy if plan.meets_slo else "latency"]


def _verdict(plan: Plan, job: Job) -> str:
    if plan.predicted is None or plan.slo_ms is None:
        return "not predicted"
    latency = f"predicted {plan.predicted.judged_ms:.1f} ms for {job.percentile:g} % of requests"
    sure = in_words(chance(plan.predicted, plan.slo_ms))
    cases = f"it is kept in {sure} of cases like this"
    if plan.meets_slo:
        return f"{latency}, within the SLO of {plan.slo_ms:g} ms: {cases}"
    if searched(plan.planner):
        usual = job.limits == Limits(called=job.limits.called)
        within = "" if usual else " within --max-functions and --node-memory"
        reach = f"an SLO of {plan.slo_ms:g} ms is out of reach"
        return f"{latency} is the best found{within}; {reach}: {cases}"
    return f"{latency}, over the SLO of {plan.slo_ms:g} ms: {cases}"


def _payloads(plan: Plan) -> Iterator[str]:
    if plan.predicted and plan.predicted.payloads_ms and plan.slo_ms is not None:
        each = plan.predicted.payloads_ms
        slow = [name for name, latency_ms in each.items() if latency_ms > plan.slo_ms]
        line = f"{_count(len(each), 'payload')}: "
        line += ", ".join(f"{name} {latency_ms:.1f} ms" for name, latency_ms in each.items())
        if slow:
            line += f"; {_names(slow)} over the SLO (--percentile 100 keeps it for every payload)"
        yield line


def _wraps(plan: Plan, job: Job) -> list[str]:
    """Return why there are several wraps, and a line for each."""
    lines = _some(list(map(_wrap, plan.wraps)), "wraps")
    if searched(plan.planner) and len(plan.wraps) > 1:
        lines.insert(0, f"{len(plan.wraps)} wraps: {_why_several(job, plan.wraps[0].mechanism)}")
    return lines


def _wrap(wrap: Wrap) -> str:
    running = sum(map(bool, wrap.processes))
    work = f"{_count(len(wrap.tasks), 'task')} in {_count(running, 'process', 'es')}"
    share = "that share" if running > wrap.cpus else "on"
    return f"{wrap.name}: {work} {share} {_count(wrap.cpus, 'CPU')}, {wrap.memory_mib} MiB"


def _why_several(job: Job, mechanism: str) -> str:
    if job.conflicts.wrap:
        return "some functions share none, see below"
    platform, memory = job.platform, job.limits.node_memory_mib
    node = f"a node has {platform.cpus} CPUs{f' and {memory} MiB' if memory else ''}"
    costs = [f"{node}, a call costs {platform.rpc_ms:.1f} ms"]
    costs.append(mechanism_of(mechanism).stagger_in_words(platform))
    return ", ".join(filter(None, costs))


def _crossings(plan: Plan, job: Job) -> Iterator[str]:
    """Yield the transfers between wraps with the first payload, and their times."""
    if not job.platform.paths:
        return
    run = run_of(job.workflow, job.profile.mix[0].profile)
    profile = known_with(run.profile)
    placed, workflow, _ = expanded(*run.placed(plan), profile)
    pairs: dict[tuple[int, int], list[Crossing]] = {}
    for each in crossings(placed, workflow, profile, job.platform):
        pairs.setdefault((each.source, each.target), []).append(each)
    path = way_of(plan.path, workflow, job.platform, plan.orchestrator).path
    for (source, target), found in pairs.items():
        size_mb = sum(each.size_bytes for each in found) / 1e6
        largest = sorted(found, key=lambda each: (-each.size_bytes, each.task))
        names = _names(list(dict.fromkeys(each.task for each in largest)))
        yield (
            f"{placed.wraps[source].name} to {placed.wraps[target].name}: {size_mb:.3g} MB of "
            f"{names} {IN_WORDS[path]}, {sum(each.ms for each in found):.1f} ms in all"
        )


def _processes(plan: Plan, job: Job) -> Iterator[str]:
    for wrap in plan.wraps:
        place = f"{wrap.name}, " if len(plan.wraps) > 1 else ""
        for number, process in enumerate(wrap.processes, start=1):
            if len(process) > 1:
                yield f"{place}{_shared(process, number, wrap, job)}"


def _shared(process: Sequence[str], number: int, wrap: Wrap, job: Job) -> str:
    functions = [job.workflow.function_of(task) for task in process]
    names = list(dict.fromkeys(functions))
    gil_ms = sum(job.profile.functions[f].time_ms("cpu") for f in functions)
    tasks = f" ({len(process)} tasks)" if len(names) < len(process) else ""
    share = "shares" if len(names) == 1 else "share"
    which = "the main process" if number == 1 else f"process {number}"
    cost = mechanism_of(wrap.mechanism).start_in_words(job.platform)
    if any(len(beside) > 1 for beside in _by_stage(process, job.workflow)):
        cost = f"a CPU and {cost}"
    return (
        f"{_names(names)}{tasks} {share} {which}: "
        f"together {gil_ms:.1f} ms of GIL, alone they would cost {cost} each"
    )


def _conflicts(plan: Plan, job: Job) -> list[str]:
    """Return the conflicts that a plan respects, or those that a fixed layout breaks."""
    if respects_conflicts(plan.planner):
        return list(map(_kept_apart, job.conflicts.rules))
    reasons = dict.fromkeys(each.reason for each in broken(plan, job.workflow, job.conflicts.rules))
    return [f"conflict that {plan.planner} does not respect: {reason}" for reason in reasons]


def _by_stage(tasks: Iterable[str], workflow: Workflow) -> list[list[str]]:
    wanted = frozenset(tasks)
    stages = ([task for task in stage if task in wanted] for stage in workflow.stages)
    return list(filter(None, stages))


def _kept_apart(rule: Apart) -> str:
    own = rule.function
    names = _names(["its own other tasks" if each == own else each for each in rule.others])
    return f"{own} shares no {rule.level} with {names}: {rule.reason}"


def _widened_secrets(plan: Plan, job: Job) -> Iterator[str]:
    """Yield a line for every wrap in which a function can read another function's secrets.

    All functions of a wrap are in one sandbox, with the union of their secrets as files.
    """
    for wrap in plan.wraps:
        inside = list(dict.fromkeys(map(job.workflow.function_of, wrap.tasks)))
        owners = [name for name in inside if job.secrets.get(name)]
        given = sorted({secret for name in owners for secret in job.secrets[name]})
        if any(set(job.secrets.get(name, ())) < set(given) for name in inside):
            plural = "s" if len(given) > 1 else ""
            yield (
                f"{wrap.name} gives the secret{plural} {', '.join(given)} of {', '.join(owners)} "
                "to all its functions: isolate in constraints.json keeps one to a wrap of its own"
            )


def _some(lines: list[str], what: str) -> list[str]:
    left = len(lines) - _MOST_LINES
    return lines if left <= 0 else [*lines[:_MOST_LINES], f"and {left} more {what} like these"]


def _count(number: int, what: str, plural: str = "s") -> str:
    return f"{number} {what}{plural if number != 1 else ''}"


def _names(names: Sequence[str]) -> str:
    if len(names) > _MOST_NAMES:
        return f"{', '.join(names[:_MOST_NAMES])} and {len(names) - _MOST_NAMES} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
