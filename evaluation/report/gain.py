"""Summarises in a few lines what our plan gains over one function in each sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from chiron.deployment.background_load import disturbance
from chiron.evaluation.experiments.metric import MetricResult, MetricRow
from chiron.evaluation.intervals import Interval
from chiron.evaluation.report.tables import number
from chiron.workflow.plan import DEFAULT_PERCENTILE

#: The length of the longest bar, in characters.
_WIDTH = 24


class Gain(NamedTuple):
    """The measured rows of the user's plan and of ours, and their comparison.

    ``ratio`` is the latency of the user's plan divided by that of ours.
    """

    before: MetricRow
    after: MetricRow
    result: MetricResult
    ratio: Interval

    @property
    def is_better(self) -> bool | None:
        """Whether our plan is faster; None if the difference is within the noise."""
        against = self.before.against[self.after.variant]
        verdict = self.result.verdict(self.before.workflow, against)
        return None if verdict == "even" else verdict == "better"

    @property
    def longest_ms(self) -> float:
        """The longer latency of both plans."""
        return max(each.value.value for each in (self.before, self.after) if each.value)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of `rows`."""
        bars = f"0 to {self.longest_ms:.0f} ms"
        return "", "latency ms (95 %)", "functions", "CPUs", "MiB", "over the SLO", bars

    @property
    def rows(self) -> Iterator[tuple[str, ...]]:
        """A row of the user's plan, and a row of ours."""
        for name, row in (("as you have it", self.before), ("with chiron", self.after)):
            if row.value is not None:
                yield name, *_cells(row, row.value), _bar(row.value.value / self.longest_ms)

    @property
    def sentences(self) -> Iterator[str]:
        """The advice, the prediction, and the certainty with its limiting factor."""
        yield self._advice
        yield from _predicted(self.after)
        requests = self.before.details["requests"] + self.after.details["requests"]
        interval = f"{self.ratio.low:.2f} to {self.ratio.high:.2f}"
        yield f"how sure: {interval} times, 95 % interval of {requests:.0f} requests; {self._why}"

    @property
    def _advice(self) -> str:
        """The advice to take our plan if it meets the SLO and is faster or smaller."""
        before, after = self.before, self.after
        size = f"{_count(after.wraps, 'function')} instead of {before.wraps}, "
        size += f"{_count(after.cpus, 'CPU')} instead of {before.cpus}"
        if not _keeps(after):
            late = f"{after.details['over_slo']:.1%} of its requests were over the SLO"
            other = "what you have keeps it" if _keeps(before) else "and so was what you have"
            return f"do not take the plan of chiron: {late}, {other}"
        if self.is_better:
            return f"take the plan of chiron: {self.ratio.value:.1f} times as fast, {size}"
        slower = "as fast as now" if self.is_better is None else "slower, within the SLO"
        if (after.wraps, after.cpus) < (before.wraps, before.cpus):
            return f"take the plan of chiron: {slower}, {size}"
        return f"stay with what you have: the plan of chiron is {slower}, {size}"

    @property
    def _why(self) -> str:
        drift = self.result.drift.get(self.before.workflow)
        busy = disturbance(drift.others) if drift else None
        return f"not surer, as {busy}" if busy else "more requests make it surer (--samples 500)"


def gain_of(result: MetricResult, workflow: str, before: str, after: str) -> Gain | None:
    """Compare the plans `before` and `after`; return None if either was not measured."""
    rows = result.row(workflow, before), result.row(workflow, after)
    if rows[0] is None or rows[1] is None or rows[0].value is None or rows[1].value is None:
        return None
    against = rows[0].against.get(after)
    if against is None or not against.low:
        return None
    inverse = Interval(value=1 / against.value, low=1 / against.high, high=1 / against.low)
    return Gain(rows[0], rows[1], result, inverse)


def _cells(row: MetricRow, value: Interval) -> tuple[str, ...]:
    over = row.details.get("over_slo")
    return (
        f"{value.value:.1f} ({value.low:.1f} to {value.high:.1f})",
        str(row.wraps),
        str(row.cpus),
        number(row.details.get("mib")),
        "-" if over is None else f"{over:.1%}",
    )


def _keeps(row: MetricRow) -> bool:
    """Return whether the plan met the SLO for the default percentile of requests."""
    return row.details.get("over_slo", 0.0) <= 1 - DEFAULT_PERCENTILE / 100


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _bar(share: float) -> str:
    return "█" * max(1, round(share * _WIDTH))


def _predicted(row: MetricRow) -> Iterator[str]:
    found = row.details
    if "predicted_ms" in found:
        low, high = found["predicted_low_ms"], found["predicted_high_ms"]
        predicted = f"{found['predicted_ms']:.1f} ms ({low:.1f} to {high:.1f})"
        way = "below" if found["error"] < 0 else "above"
        yield f"predicted before: {predicted}, {abs(found['error']):.0%} {way} what was measured"
