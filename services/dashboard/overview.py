"""What is said of a deployed workflow: whether it keeps its SLO, its load, how it failed last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dash import html
from dash.development.base_component import Component

from chiron.deployment.live import Latency, LiveWorkflow
from chiron.generator.annotations import DeployedPrediction
from chiron.services.dashboard.address import page_of
from chiron.services.dashboard.parts import facts, labelled, link, number
from chiron.workflow.plan import DEFAULT_PERCENTILE

#: The fields of a latency, by what they are called on the page.
_TIMES = {"Mean": "mean_ms", "p50": "p50_ms", "p95": "p95_ms", "p99": "p99_ms"}
_BLOCKS = "▁▂▃▄▅▆▇█"


class Verdict(NamedTuple):
    """Whether a workflow keeps its SLO: a word, which is a class of the page too, and why."""

    word: str
    why: str


def verdict(live: LiveWorkflow) -> Verdict:
    """What the requests of the last minute say of the SLO of a deployed workflow.

    The words are ``met``, ``missed`` and ``unknown``.
    """
    predicted, latency = live.deployed.predicted, live.latency
    if predicted is None or predicted.slo_ms is None:
        return Verdict("unknown", "it was deployed without an SLO")
    percentile = predicted.within.percentile if predicted.within else DEFAULT_PERCENTILE
    rate = f" at up to {predicted.under_load.load.shown}" if predicted.under_load else ""
    promise = f"{percentile:g} % of requests within {predicted.slo_ms:g} ms{rate}"
    if latency is None or latency.within_slo is None:
        return Verdict("unknown", f"{promise} is the SLO; no request was counted")
    met = 100 * latency.within_slo >= percentile
    return Verdict("met" if met else "missed", f"{latency.within_slo:.1%}; the SLO is {promise}")


def cards(found: Sequence[tuple[LiveWorkflow, Sequence[float]]]) -> Component | None:
    """The cards of workflows, each with the p95 of earlier looks, in milliseconds."""
    made = [_card(live, trend_ms) for live, trend_ms in found]
    return html.Div(made, className="cards") if made else None


def verdicts(found: Sequence[tuple[LiveWorkflow, Sequence[float]]]) -> list[Component]:
    """All that is known of the latency of a workflow, for each planner that it is deployed by."""
    return [_verdict(live, trend_ms) for live, trend_ms in found]


def sparkline(values: Sequence[float]) -> str:
    """`values` as blocks, from zero to the largest."""
    most = max(values, default=0.0)
    if not most > 0:
        return ""
    return "".join(_BLOCKS[round(value / most * (len(_BLOCKS) - 1))] for value in values)


def _card(live: LiveWorkflow, trend_ms: Sequence[float]) -> Component:
    deployed, latency = live.deployed, live.latency
    shown = {
        "p95": "-" if latency is None else f"{latency.p95_ms:.1f} ms",
        "Requests/s": number(live.requests_per_s),
        "Failed/s": number(live.failed_per_s),
        **_cost(live),
    }
    failure = next(iter(live.failures), None)
    return html.Article(
        [
            html.Div(
                [
                    html.H3(link(deployed.workflow, page_of(deployed.workflow))),
                    _badge(live),
                ],
                className="title",
            ),
            html.P(f"{deployed.planner}: {verdict(live).why}.", className="quiet"),
            facts(shown),
            *_trend(trend_ms),
            *([html.P(f"Last failure: {failure.code} {failure.message}")] if failure else []),
        ],
        className="card",
        **labelled(deployed.workflow),
    )


def _verdict(live: LiveWorkflow, trend_ms: Sequence[float]) -> Component:
    latency, predicted = live.latency, live.deployed.predicted
    times = {
        name: f"{getattr(latency, field):.1f} ms" if latency else "-"
        for name, field in _TIMES.items()
    }
    shown = {
        "Within the SLO": f"{latency.within_slo:.1%}"
        if latency and latency.within_slo is not None
        else "-",
        "SLO": f"{predicted.slo_ms:g} ms" if predicted and predicted.slo_ms else "-",
        **times,
        "Predicted ms": predicted.shown if predicted else "-",
        "Mean in the range": _side(latency, predicted),
        "Requests/s": number(live.requests_per_s),
        "Failed/s": number(live.failed_per_s),
        **_cost(live),
        "Planner": live.deployed.planner,
    }
    told = html.P([_badge(live), f" {verdict(live).why}."], className="verdict")
    return html.Div([told, facts(shown), *_trend(trend_ms)], className="card")


def _badge(live: LiveWorkflow) -> Component:
    word = verdict(live).word
    return html.Strong(f"SLO {word}", className=f"badge {word}")


def _cost(live: LiveWorkflow) -> dict[str, Any]:
    deployed = live.deployed
    return {
        "Replicas": f"{deployed.available}/{deployed.replicas}",
        "CPUs": deployed.predicted.cpus if deployed.predicted else "-",
    }


def _trend(trend_ms: Sequence[float]) -> list[Component]:
    drawn = sparkline(trend_ms)
    hidden: dict[str, Any] = {"aria-hidden": "true"}
    return [html.P(drawn, className="trend", title="p95 so far", **hidden)] if drawn else []


def _side(latency: Latency | None, predicted: DeployedPrediction | None) -> str:
    """Where the mean is, as seen from the range of the predicted mean."""
    if latency is None or predicted is None:
        return "-"
    low_ms, high_ms = predicted.expected_range_ms
    if latency.mean_ms < low_ms:
        return "below"
    return "above" if latency.mean_ms > high_ms else "yes"
