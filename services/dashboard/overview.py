"""A card for each deployed workflow: whether it keeps its SLO, its load, and how it failed last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dash import html
from dash.development.base_component import Component

from chiron.deployment.live import LiveWorkflow
from chiron.services.dashboard.parts import labelled
from chiron.workflow.plan import DEFAULT_PERCENTILE

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
    promise = f"{percentile:g} % of requests within {predicted.slo_ms:g} ms"
    if latency is None or latency.within_slo is None:
        return Verdict("unknown", f"{promise} is the SLO; no request was counted")
    met = 100 * latency.within_slo >= percentile
    return Verdict("met" if met else "missed", f"{latency.within_slo:.1%}; the SLO is {promise}")


def cards(found: Sequence[tuple[LiveWorkflow, Sequence[float]]]) -> list[Component]:
    """The cards of workflows, each with the p95 of earlier looks, in milliseconds."""
    return [_card(live, trend_ms) for live, trend_ms in found]


def sparkline(values: Sequence[float]) -> str:
    """`values` as blocks, from zero to the largest."""
    most = max(values, default=0.0)
    if not most > 0:
        return ""
    return "".join(_BLOCKS[round(value / most * (len(_BLOCKS) - 1))] for value in values)


def _card(live: LiveWorkflow, trend_ms: Sequence[float]) -> Component:
    deployed, latency = live.deployed, live.latency
    word, why = verdict(live)
    predicted = deployed.predicted
    facts = {
        "p95": "-" if latency is None else f"{latency.p95_ms:.1f} ms",
        "Requests/s": "-" if live.requests_per_s is None else f"{live.requests_per_s:.1f}",
        "Failed/s": "-" if live.failed_per_s is None else f"{live.failed_per_s:.1f}",
        "Replicas": f"{deployed.available}/{deployed.replicas}",
        "CPUs": predicted.cpus if predicted else "-",
    }
    hidden: dict[str, Any] = {"aria-hidden": "true"}
    failure = next(iter(live.failures), None)
    return html.Article(
        [
            html.H3(f"{deployed.workflow}, {deployed.planner}"),
            html.P([html.Strong(f"SLO {word}", className=word), f": {why}."]),
            html.Dl([html.Div([html.Dt(name), html.Dd(value)]) for name, value in facts.items()]),
            html.P(sparkline(trend_ms), className="trend", title="p95 so far", **hidden),
            *([html.P(f"Last failure: {failure.code} {failure.message}")] if failure else []),
        ],
        className="card",
        **labelled(deployed.workflow),
    )
