"""The state of a deployed workflow: whether it keeps its SLO, its load, its last failure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dash import html
from dash.development.base_component import Component

from chiron.deployment.live import Latency, LiveWorkflow
from chiron.deployment.verdict import FEWEST
from chiron.generator.annotations import DeployedPrediction
from chiron.services.dashboard.address import page_of
from chiron.services.dashboard.parts import facts, labelled, link, number, picture, time
from chiron.workflow.plan import DEFAULT_PERCENTILE

#: The fields of a latency, by their names on the page.
_TIMES = {"Mean": "mean_ms", "p50": "p50_ms", "p95": "p95_ms", "p99": "p99_ms"}
#: The size of a trend in pixels, and its colours, visible on light and on dark backgrounds.
_WIDTH, _HEIGHT, _LINE, _SLO = 240, 40, "#3f86d0", "#d04a52"


class Verdict(NamedTuple):
    """Whether a workflow keeps its SLO: a word, which is also a class of the page, and why."""

    word: str
    why: str


def verdict(live: LiveWorkflow) -> Verdict:
    """Return whether the requests of the last minute met the SLO of a deployed workflow.

    If they are too few, the verdict is on all requests since the replicas started, such as those of
    the measurement by `chiron deploy`. The words are ``met``, ``missed`` and ``unknown``.
    """
    predicted, latency, when = live.deployed.predicted, live.latency, ""
    if latency is None or latency.requests < FEWEST:
        latency, when = live.ever, " since its replicas started"
    if predicted is None or predicted.slo_ms is None:
        return Verdict("unknown", "it was deployed without an SLO")
    percentile = predicted.within.percentile if predicted.within else DEFAULT_PERCENTILE
    rate = f" at up to {predicted.under_load.load.shown}" if predicted.under_load else ""
    promise = f"{percentile:g} % of requests within {predicted.slo_ms:g} ms{rate}"
    if latency is None or latency.met is None:
        return Verdict("unknown", f"no request was counted; the SLO is {promise}")
    counted = f"{latency.met} of {latency.requests} requests were within it{when}"
    why = f"{counted}; the SLO is {promise}"
    if latency.requests < FEWEST:
        return Verdict("unknown", f"{why}; fewer than {FEWEST} tell nothing")
    met = 100 * latency.met >= percentile * latency.requests
    return Verdict("met" if met else "missed", why)


def cards(found: Sequence[tuple[LiveWorkflow, Sequence[float]]]) -> list[Component]:
    """Return the cards of workflows, each with the p95 of earlier polls in milliseconds.

    A workflow that was deployed without a prediction has only a link.
    """
    predicted = [each for each in found if each[0].deployed.predicted]
    made = html.Div([_card(*each) for each in predicted], className="cards")
    names = [live.deployed.workflow for live, _ in found if not live.deployed.predicted]
    if not names:
        return [made] if predicted else []
    links = [part for name in names for part in (" ", link(name, page_of(name)))]
    told = "Deployed without an SLO, as what is being measured is:"
    return [made, html.P([told, *links], className="quiet")]


def verdicts(found: Sequence[tuple[LiveWorkflow, Sequence[float]]]) -> list[Component]:
    """Return all data on the latency of a workflow, for every planner that it is deployed by."""
    return [_verdict(live, trend_ms) for live, trend_ms in found]


def sparkline(values: Sequence[float], slo: float | None) -> str:
    """Return `values` as a line from zero, with a line for the `slo`, as SVG; empty if fewer than
    two."""
    most = max([*values, slo or 0.0])
    if len(values) < 2 or not most:
        return ""
    heights = [f"{_HEIGHT - 1 - (_HEIGHT - 2) * value / most:.1f}" for value in [*values, slo or 0]]
    step = _WIDTH / (len(values) - 1)
    line = " ".join(f"{number * step:.1f},{y}" for number, y in enumerate(heights[:-1]))
    drawn = f'<polyline points="{line}" fill="none" stroke="{_LINE}" stroke-width="2"/>'
    if slo:
        drawn += f'<path d="M0 {heights[-1]}H{_WIDTH}" stroke="{_SLO}" stroke-dasharray="4"/>'
    size = f'width="{_WIDTH}" height="{_HEIGHT}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{drawn}</svg>'


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
            *_trend(live, trend_ms),
            *(
                [html.P(["Last failure ", time(failure.at), f": {failure.code} {failure.message}"])]
                if failure
                else []
            ),
        ],
        className="card",
        id=f"card-{deployed.workflow}-{deployed.planner}",
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
    return html.Div([told, facts(shown), *_trend(live, trend_ms)], className="card")


def _badge(live: LiveWorkflow) -> Component:
    word = verdict(live).word
    return html.Strong(f"SLO {word}", className=f"badge {word}")


def _cost(live: LiveWorkflow) -> dict[str, Any]:
    deployed = live.deployed
    return {
        "Replicas": f"{deployed.available}/{deployed.replicas}",
        "CPUs": deployed.predicted.cpus if deployed.predicted else "-",
    }


def _trend(live: LiveWorkflow, trend_ms: Sequence[float]) -> list[Component]:
    predicted = live.deployed.predicted
    drawn = sparkline(trend_ms, predicted.slo_ms if predicted else None)
    told = "p95 at the last looks; the dashed line is the SLO"
    return [html.Img(src=picture(drawn), alt="", title=told, className="trend")] if drawn else []


def _side(latency: Latency | None, predicted: DeployedPrediction | None) -> str:
    """Return whether the mean is in the predicted mean's range ("yes"), below or above it."""
    if latency is None or predicted is None:
        return "-"
    low_ms, high_ms = predicted.expected_range_ms
    if latency.mean_ms < low_ms:
        return "below"
    return "above" if latency.mean_ms > high_ms else "yes"
