"""Why a goal is missed, in words made of what was measured beside it."""

from __future__ import annotations

from collections.abc import Mapping

from evaluation.bench.variants import Variant
from evaluation.experiments.breakdown import BreakdownResult
from evaluation.experiments.goals import Verdict
from evaluation.experiments.metric import MetricResult, MetricRow
from evaluation.experiments.slo import SloResult
from evaluation.measurements.breakdown import Breakdown
from evaluation.usage.around import PARTS


def explain(
    verdict: Verdict,
    results: Mapping[str, MetricResult],
    parts: BreakdownResult | None,
    slo: SloResult | None = None,
) -> list[str]:
    """A line for every workflow that is on the wrong side of a missed goal."""
    if verdict.metric == "latency" and parts is not None:
        lines = [_latency(verdict, workflow, parts) for workflow in verdict.missed]
    elif verdict.metric == "throughput":
        lines = [
            _throughput(verdict, workflow, results["throughput"]) for workflow in verdict.missed
        ]
    elif verdict.metric == "memory":
        lines = [_memory(verdict, workflow, results["memory"]) for workflow in verdict.missed]
    elif slo is not None and "latency" in results:
        lines = [_violations(verdict, each, slo, results["latency"]) for each in verdict.missed]
    else:
        lines = []
    return [line for line in lines if line]


def _latency(verdict: Verdict, workflow: str, parts: BreakdownResult) -> str:
    """The parts of ours' and of the rival's time, and what ours would be without all but one."""
    ours, rival = (_typical(parts, workflow, label) for label in (verdict.ours, verdict.rival))
    if ours is None or rival is None:
        return ""
    best = ours.functions_ms / rival.latency_ms
    return (
        f"{workflow}: {verdict.ours} takes {_parts(ours)}; {verdict.rival} {_parts(rival)}. "
        f"With nothing but its functions {verdict.ours} would be at {best:.2f} of {verdict.rival}"
    )


def _parts(typical: Breakdown) -> str:
    """A request's time as a sum; waiting is inside of what the functions take."""
    return (
        f"{typical.latency_ms:.1f} ms = {typical.functions_ms:.1f} functions "
        f"(which wait {typical.waiting_ms:.1f} for a core or the GIL, added up) "
        f"+ {typical.starting_ms:.1f} starting processes + {typical.wrap_ms:.1f} inside the wrap "
        f"+ {typical.outside_ms:.1f} gateway and HTTP"
    )


def _throughput(verdict: Verdict, workflow: str, result: MetricResult) -> str:
    """What a request takes from the CPUs, by who takes it: who is not busy waits for something."""
    rows = [result.row(workflow, label) for label in (verdict.ours, verdict.rival)]
    said = [_at_work(row) for row in rows if row is not None and row.value is not None]
    return f"{workflow}: {'; '.join(said)}"


def _at_work(row: MetricRow) -> str:
    rate = row.value.value if row.value else 0.0
    used_ms = {part: row.details[name] for part in PARTS if (name := f"{part} ms") in row.details}
    if not used_ms:
        return f"{row.variant} answers {rate:.0f}/s"
    named = ", ".join(f"{part} {each:.1f}" for part, each in used_ms.items())
    busy = rate * sum(used_ms.values()) / 1000
    return (
        f"{row.variant} answers {rate:.0f}/s, each for {sum(used_ms.values()):.1f} ms of CPU "
        f"({named}), which keeps {busy:.1f} CPUs busy"
    )


def _violations(verdict: Verdict, workflow: str, slo: SloResult, latency: MetricResult) -> str:
    """How far the mean is from the SLO, what the tail is, and how Faastlane itself keeps it."""
    rows = [row for row in slo.rows if row.workflow == workflow]
    ours = next(row for row in rows if row.variant == verdict.ours)
    found = latency.row(workflow, verdict.ours)
    if found is None:
        return ""
    figures = {name: found.details.get(name, 0.0) for name in ("predicted_ms", "p95_ms", "p99_ms")}
    baseline = Variant("faastlane", ours.mechanism).label
    same = [f", of {baseline}'s own {row.violations.value:.1%}" for row in rows
            if row.variant == baseline and row.mechanism == ours.mechanism]  # fmt: skip
    return (
        f"{workflow}: {verdict.ours} takes {ours.mean_ms:.1f} ms on average (predicted "
        f"{figures['predicted_ms']:.1f}), 95 % of requests at most {figures['p95_ms']:.1f} and "
        f"99 % {figures['p99_ms']:.1f}, for an SLO of {ours.slo_ms:.1f} ms: "
        f"{ours.violations.value:.1%} are above it{''.join(same)}"
    )


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
