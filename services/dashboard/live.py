"""The section Deployed: a card for each workflow, or on a workflow's page its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from dash import Dash, Input, Output, State, dcc, html, no_update
from dash.development.base_component import Component

from chiron.deployment.journal import Journal
from chiron.deployment.live import OVER_S, Live, LiveWorkflow
from chiron.services.dashboard import figures, overview
from chiron.services.dashboard.address import workflow_at
from chiron.services.dashboard.feed import LiveFeed
from chiron.services.dashboard.parts import (
    STILL,
    empty,
    faults_of,
    labelled,
    link,
    still,
    time,
    warned,
)
from chiron.services.host import Host, host
from chiron.workflow.errors import ChironError

_POLL_MS = 3000
_MEASURED = "Entry wraps count requests: the way through the gateway is not in their times."


def layout() -> Component:
    return html.Section(
        [
            html.Nav(
                [dcc.Link("Deployed", href="/"), html.Span(id="crumb")],
                className="crumbs one-only",
                **labelled("Where this page is"),
            ),
            html.H2("Deployed", id="live-title"),
            html.Div(id="live-faults", role="alert"),
            html.Div(id="live-found"),
            html.P(id="live-as-of", className="quiet"),
            dcc.Store(id="live-seen"),
            dcc.Interval(id="live-tick", interval=_POLL_MS, disabled=True),
        ],
        id="live",
    )


def add_callbacks(dash: Dash) -> None:
    @dash.callback(
        Output("live-title", "children"),
        Output("crumb", "children"),
        Output("live-faults", STILL),
        Output("live-as-of", STILL),
        Output("live-found", STILL),
        Output("deployed-slo", "data"),
        *(Output(name, STILL) for name in figures.PLACES),
        Input("live-tick", "n_intervals"),
        Input("live-seen", "data"),
        Input("address", "pathname"),
        State("deployed-slo", "data"),
        prevent_initial_call=True,
    )
    def live(
        _ticks: int | None, _seen: Any, path: str | None, slo: list[Any] | None
    ) -> tuple[Any, ...]:
        name, url = workflow_at(path), host().config.gateway_url
        title = name or "Deployed", f"/ {name or ''}"
        feed = _feed(host())
        try:
            found = feed.newest()
        except ChironError as error:  # the last state stays on the page, in grey
            return *title, still(*faults_of(error)), *(no_update,) * (3 + len(figures.PLACES))
        if found is None:
            asking = still(f"Asking {url}.")
            return *title, still(), asking, *(no_update,) * (2 + len(figures.PLACES))
        at = time(found.at)
        as_of = still(f"{url} in the last {OVER_S:g} s, as of ", at, f" UTC. {_MEASURED}")
        return *title, still(), as_of, *_shown(name, found, feed, slo)


def _shown(name: str | None, found: Live, feed: LiveFeed, slo: list[Any] | None) -> tuple[Any, ...]:
    """Return the cards of all workflows, or the details of the workflow `name`.

    `slo` is the workflow of the page shown before, with the SLO of its deployment.
    """
    if name is None:
        cards = overview.cards([(each, feed.trend_ms(each)) for each in found.workflows])
        no_slo = None if slo else no_update
        return still(*(cards or [_nothing()])), no_slo, *(no_update,) * len(figures.PLACES)
    ours = [each for each in found.workflows if each.deployed.workflow == name]
    verdicts = overview.verdicts([(each, feed.trend_ms(each)) for each in ours])
    events = [
        each
        for each in Journal(host().config.state).events_of(found.gateway)
        if each.workflow == name
    ]
    predictions = [predicted for each in ours if (predicted := each.deployed.predicted)]
    warnings = warned([line for each in predictions for line in each.warnings])
    shown = still(*(verdicts or [_not_deployed(name)]), *warnings)
    return shown, _new_slo(ours, slo), *figures.shown(ours, events)


def _new_slo(found: Sequence[LiveWorkflow], before: list[Any] | None) -> Any:
    """Return the workflow and its deployed SLO in milliseconds, unless equal to `before`."""
    for live in found:
        predicted = live.deployed.predicted
        if predicted and predicted.slo_ms:
            now = [live.deployed.workflow, predicted.slo_ms]
            return no_update if now == before else now
    return no_update


def _nothing() -> Component:
    return empty(
        "Nothing is deployed",
        "Choose a workflow's folder below and press Deploy, or run ",
        html.Code("chiron deploy DIR --slo 200ms"),
        ".",
    )


def _not_deployed(name: str) -> Component:
    return empty(
        f"{name} is not deployed on this gateway",
        "Choose its folder below and press Deploy, or go back to what is deployed: ",
        link("Deployed", "/"),
        ".",
    )


@cache
def _feed(owner: Host) -> LiveFeed:
    return LiveFeed(owner.config.gateway_url, owner.config.verify_tls)
