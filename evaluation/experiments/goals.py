"""What was promised of our plans, and whether the figures of a run keep it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluation.experiments.metric import MetricResult
from evaluation.experiments.slo import SloResult
from evaluation.intervals import Interval, product_mean
from workflow.documents import Document

#: The workflows of the goals for throughput.
_BUSY = ("finra", "social-network", "movie-review")
#: Violations of the SLO allowed, and requests that such a figure needs.
_VIOLATIONS, _REQUESTS = 0.02, 500


@dataclass(frozen=True)
class Goal:
    """That ours, divided by `rival`'s, is on average at most `most`, or at least `least`.

    For throughput every workflow has to reach it.
    """

    metric: str
    rival: str
    most: float | None = None
    least: float | None = None
    workflows: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The goal in words."""
        if self.most is not None:
            return f"{self.metric} at least {1 - self.most:.0%} under {self.rival}, on average"
        return f"{self.metric} at least {self.least:g} x {self.rival}, on each workflow"


GOALS = (
    Goal("latency", "one-to-one", most=0.75),
    Goal("latency", "sand fork", most=0.60),
    Goal("latency", "faastlane fork", most=0.70),
    Goal("memory", "one-to-one", most=0.20),
    Goal("throughput", "faastlane fork", least=4.0, workflows=_BUSY),
    Goal("throughput", "one-to-one", least=2.0, workflows=_BUSY),
)


class Verdict(Document):
    """One goal and one of our variants.

    Attributes
    ----------
    reached
        The ratio that decides: the geometric mean, or that of the worst workflow; None where
        nothing was measured.
    by_workflow
        The ratios that it is made of.
    missed
        The workflows that are on the wrong side by themselves.
    """

    goal: str
    metric: str
    rival: str
    ours: str
    limit: float
    reached: float | None = None
    met: bool | None = None
    by_workflow: dict[str, Interval]
    missed: tuple[str, ...] = ()


def verdicts(
    results: Mapping[str, MetricResult], slo: SloResult | None, ours: Sequence[str]
) -> list[Verdict]:
    """Every goal with each of our variants."""
    found = [
        _verdict(goal, results[goal.metric], label)
        for goal in GOALS
        for label in ours
        if goal.metric in results
    ]
    return found + ([_violations(slo, label) for label in ours] if slo else [])


def _verdict(goal: Goal, result: MetricResult, ours: str) -> Verdict:
    ratios: dict[str, Interval] = {}
    for workflow in result.workflows:
        row = result.row(workflow, goal.rival)
        if row and ours in row.against and workflow in (goal.workflows or (workflow,)):
            ratios[workflow] = row.against[ours]
    limit = goal.most if goal.most is not None else goal.least or 0.0
    values = [each.value for each in ratios.values()]
    lower = goal.most is not None
    reached = (product_mean(values) if lower else min(values)) if values else None
    return Verdict(
        goal=goal.text,
        metric=goal.metric,
        rival=goal.rival,
        ours=ours,
        limit=limit,
        reached=None if reached is None else round(reached, 4),
        met=None if reached is None else (reached <= limit if lower else reached >= limit),
        by_workflow=ratios,
        missed=tuple(w for w, r in ratios.items() if (r.value > limit) == lower),
    )


def _violations(slo: SloResult, ours: str) -> Verdict:
    rows = [row for row in slo.rows if row.variant == ours]
    shares = {row.workflow: row.violations for row in rows}
    worst = max((each.value for each in shares.values()), default=None)
    enough = all(row.requests >= _REQUESTS for row in rows)
    return Verdict(
        goal=f"under {_VIOLATIONS:.0%} of at least {_REQUESTS} requests miss the SLO, on each",
        metric="slo",
        rival="SLO",
        ours=ours,
        limit=_VIOLATIONS,
        reached=worst,
        met=None if worst is None or not enough else worst < _VIOLATIONS,
        by_workflow=shares,
        missed=tuple(name for name, each in shares.items() if each.value >= _VIOLATIONS),
    )
