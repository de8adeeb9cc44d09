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
from chiron.services.dashboard.parts import empty, faults, labelled, time
from chiron.services.host import Host, host
from chiron.workflow.errors import ChironError

_POLL_MS = 3000
_MEASURED = "Entry wraps count requests: the way through the gateway is not in their times."
#: What the figures are that only a workflow's page shows, by their elements.
_OF_ONE = ("live-warnings", "live-executions", *figures.TABLES)


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
            html.Div(
                [html.Div(id="live-cards"), html.Div(id="live-warnings", className="one-only")],
                id="live-found",
                hidden=True,
            ),
            html.P("Nothing has been asked yet.", id="live-as-of", className="quiet"),
            dcc.Store(id="live-seen"),
            dcc.Store(id="live-fault"),
            dcc.Interval(id="live-tick", interval=_POLL_MS, disabled=True),
        ],
        id="live",
    )


def add_callbacks(dash: Dash) -> None:
    @dash.callback(
        Output("live-title", "children"),
        Output("crumb", "children"),
        Output("live-faults", "children"),
        Output("live-fault", "data"),
        Output("live-as-of", "children"),
        Output("live-found", "hidden"),
        Output("live-cards", "children"),
        Output("deployed-slo", "data"),
        *(Output(name, "children") for name in _OF_ONE),
        Input("live-tick", "n_intervals"),
        Input("live-seen", "data"),
        Input("address", "pathname"),
        State("live-fault", "data"),
        State("deployed-slo", "data"),
        prevent_initial_call=True,
    )
    def live(
        _ticks: int | None, _seen: Any, path: str | None, before: Any, slo: list[Any] | None
    ) -> tuple[Any, ...]:
        name, url = workflow_at(path), host().config.gateway_url
        title = name or "Deployed", f"/ {name or ''}"
        try:
            feed = _feed(host())
            found, fault = feed.newest(), None
        except ChironError as error:
            found, fault = None, error.as_dict()
        # A screen reader says what is new there: the same fault once.
        told = no_update if fault == before else faults([fault] if fault else [])
        if found is None:
            nothing = "" if fault else f"Asking {url}."
            return *title, told, fault, nothing, True, [], no_update, *([no_update] * len(_OF_ONE))
        as_of = [f"{url} in the last {OVER_S:g} s, as of ", time(found.at), " UTC. ", _MEASURED]
        return *title, told, fault, as_of, False, *_shown(name, found, feed, slo)


def _shown(name: str | None, found: Live, feed: LiveFeed, slo: list[Any] | None) -> tuple[Any, ...]:
    """The cards of all workflows, or all of the workflow `name`.

    `slo` is the workflow whose page was shown before, and the SLO that it is deployed with.
    """
    if name is None:
        cards = overview.cards([(each, feed.trend_ms(each)) for each in found.workflows])
        return (cards or _nothing(), None if slo else no_update, *([no_update] * len(_OF_ONE)))
    ours = [each for each in found.workflows if each.deployed.workflow == name]
    verdicts = overview.verdicts([(each, feed.trend_ms(each)) for each in ours])
    told = [
        each for each in Journal(host().config.state).of(found.gateway) if each.workflow == name
    ]
    warnings = [html.P(f"Warning: {line}") for line in _warnings(ours)]
    shown = warnings, figures.executions(ours), *figures.rows(ours, told)
    return (verdicts or _not_deployed(name), _new_slo(ours, slo), *shown)


def _new_slo(found: Sequence[LiveWorkflow], before: list[Any] | None) -> Any:
    """The workflow and the SLO that it is deployed with, in milliseconds, unless told `before`."""
    for live in found:
        predicted = live.deployed.predicted
        if predicted and predicted.slo_ms:
            now = [live.deployed.workflow, predicted.slo_ms]
            return no_update if now == before else now
    return no_update


def _nothing() -> Component:
    return empty(
        "Nothing is deployed",
        [
            "Choose a workflow's folder below and press Deploy, or run ",
            html.Code("chiron deploy DIR --slo 200ms"),
            ".",
        ],
    )


def _not_deployed(name: str) -> Component:
    return empty(
        f"{name} is not deployed on this gateway",
        [
            "Choose its folder below and press Deploy, or go back to what is deployed: ",
            dcc.Link("Deployed", href="/"),
            ".",
        ],
    )


@cache
def _feed(owner: Host) -> LiveFeed:
    return LiveFeed(owner.config.gateway_url, owner.config.verify_tls)


def _warnings(found: Sequence[LiveWorkflow]) -> list[str]:
    """What is to be said of the predictions of workflows, each once."""
    predictions = [predicted for each in found if (predicted := each.deployed.predicted)]
    return list(dict.fromkeys(line for each in predictions for line in each.warnings))
