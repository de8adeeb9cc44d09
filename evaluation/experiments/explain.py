"""Why a goal is missed, in words made of what was measured beside it."""

from __future__ import annotations

from collections.abc import Mapping

from evaluation.experiments.breakdown import BreakdownResult
from evaluation.experiments.goals import Verdict
from evaluation.experiments.metric import MetricResult, MetricRow
from evaluation.measurements.breakdown import Breakdown


def explain(
    verdict: Verdict, results: Mapping[str, MetricResult], parts: BreakdownResult | None
) -> list[str]:
    """A line for every workflow that is on the wrong side of a missed goal."""
    if verdict.metric == "latency" and parts is not None:
        lines = [_latency(verdict, workflow, parts) for workflow in verdict.missed]
    elif verdict.metric == "throughput":
        lines = [_throughput(verdict, workflow, results) for workflow in verdict.missed]
    elif verdict.metric == "memory":
        lines = [_memory(verdict, workflow, results["memory"]) for workflow in verdict.missed]
    else:
        lines = []
    return [line for line in lines if line]


def _latency(verdict: Verdict, workflow: str, parts: BreakdownResult) -> str:
    """What of ours and of the rival's time is not the functions' own."""
    ours, rival = (_typical(parts, workflow, label) for label in (verdict.ours, verdict.rival))
    if ours is None or rival is None:
        return ""
    own, other = ours.latency_ms - ours.functions_ms, rival.latency_ms - rival.functions_ms
    best = ours.functions_ms / rival.latency_ms
    return (
        f"{workflow}: functions run for {ours.functions_ms:.1f} of ours' {ours.latency_ms:.1f} ms "
        f"and for {rival.functions_ms:.1f} of {verdict.rival}'s {rival.latency_ms:.1f}; all else "
        f"is {own:.1f} against {other:.1f} ms, so that with nothing but functions ours would be "
        f"at {best:.2f} of it"
    )


def _throughput(verdict: Verdict, workflow: str, results: Mapping[str, MetricResult]) -> str:
    """How busy the CPUs of either are at the maximum: who is not busy waits for something."""
    cpu = results.get("cpu")
    if cpu is None:
        return ""
    said = []
    for label in (verdict.ours, verdict.rival):
        rate, use = (r.row(workflow, label) for r in (results["throughput"], cpu))
        if rate is None or use is None or rate.value is None or use.value is None:
            return ""
        busy = rate.value.value * use.value.value / 1000
        said.append(
            f"{label} answers {rate.value.value:.0f}/s at {use.value.value:.1f} ms of CPU each, "
            f"which keeps {busy:.1f} of its {rate.cpus} CPUs busy"
        )
    return f"{workflow}: {'; '.join(said)}"


def _memory(verdict: Verdict, workflow: str, result: MetricResult) -> str:
    rows = [result.row(workflow, label) for label in (verdict.ours, verdict.rival)]
    said = [_sandboxes(row) for row in rows if row is not None and row.value is not None]
    return f"{workflow}: {' against '.join(said)}"


def _sandboxes(row: MetricRow) -> str:
    mib = row.value.value if row.value else 0.0
    return f"{row.wraps} sandboxes with {mib:.0f} MiB in all"


def _typical(parts: BreakdownResult, workflow: str, label: str) -> Breakdown | None:
    found = (r.typical for r in parts.rows if (r.workflow, r.variant) == (workflow, label))
    return next(found, None)
