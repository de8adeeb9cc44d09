"""The section Deployed: what the deployed workflows do, while somebody looks."""

from __future__ import annotations

from functools import cache
from typing import Any

from dash import Dash, Input, Output, State, dcc, html, no_update
from dash.development.base_component import Component

from chiron.deployment.journal import Journal, Told
from chiron.deployment.live import OVER_S, Latency, LiveWorkflow, LiveWrap
from chiron.generator.annotations import DeployedPrediction
from chiron.services.dashboard import overview
from chiron.services.dashboard.feed import LiveFeed
from chiron.services.dashboard.graph import shown_bytes
from chiron.services.dashboard.parts import faults, table, table_rows
from chiron.services.host import Host, host
from chiron.workflow.errors import ChironError

_POLL_MS = 3000
#: What watchers told, the newest of it that is shown.
_TOLD = 12
_NONE = "Nothing is deployed: chiron deploy does that, or the form below."
#: The tables: the id of their rows, caption, what each column has, and what there is to say where
#: there are no rows.
_TABLES = {
    "live-workflows": (
        "Deployed workflows, with times in ms",
        [
            *("Workflow", "Planner", "SLO", "Predicted", "Requests/s", "Failed/s"),
            *("Mean", "p50", "p95", "p99", "Within the SLO", "Mean in the range"),
        ],
        "None.",
    ),
    "live-wraps": (
        "Their wraps, all replicas together",
        [
            *("Wrap", "Replicas", "Heard", "In hand", "Waiting"),
            *("In the sink", "On disk", "Leaving", "Held back"),
        ],
        "None.",
    ),
    "live-buckets": (
        "Their buckets, with delays in ms from when they had to fire",
        [
            *("Workflow", "Bucket", "Events/s of the workflow", "Firings/s", "Failed/s"),
            *("Delay p50", "p99"),
        ],
        "None.",
    ),
    "live-failures": (
        "The last executions that failed",
        ["At (UTC)", "Workflow", "Execution", "Function", "Error"],
        "None, as far as the logs go back.",
    ),
    "live-told": (
        "What chiron watch saw and decided",
        ["At (UTC)", "Workflow", "Planner", "Event", "What"],
        "Nothing: no chiron watch of the user that serves this page has told of this gateway.",
    ),
}


def layout() -> Component:
    """The section."""
    tables = [table(caption, heads, [], body) for body, (caption, heads, _) in _TABLES.items()]
    return html.Section(
        [
            html.H2("Deployed"),
            html.Div(id="live-faults", role="alert"),
            html.P("Nothing has been asked yet.", id="live-as-of"),
            html.Div(
                [
                    html.Div(id="live-cards", className="cards"),
                    html.Details(
                        [html.Summary("All figures"), *tables, html.Div(id="live-warnings")]
                    ),
                ],
                id="live-found",
                hidden=True,
            ),
            dcc.Store(id="live-seen"),
            dcc.Store(id="live-fault"),
            dcc.Interval(id="live-tick", interval=_POLL_MS, disabled=True),
        ],
        id="live",
    )


def add_callbacks(dash: Dash) -> None:
    """Have the section answer."""

    @dash.callback(
        Output("live-faults", "children"),
        Output("live-fault", "data"),
        Output("live-as-of", "children"),
        Output("live-found", "hidden"),
        Output("live-cards", "children"),
        Output("live-warnings", "children"),
        *(Output(body, "children") for body in _TABLES),
        Input("live-tick", "n_intervals"),
        Input("live-seen", "data"),
        State("live-fault", "data"),
        prevent_initial_call=True,
    )
    def live(_ticks: int | None, _seen: Any, before: Any) -> tuple[Any, ...]:
        url = host().config.gateway_url
        try:
            feed = _feed(host())
            found, fault = feed.newest(), None
        except ChironError as error:
            found, fault = None, error.as_dict()
        # A screen reader says what is new there: the same fault once.
        told = no_update if fault == before else faults([fault] if fault else [])
        if found is None:
            as_of = "" if fault else f"Asking {url}."
            return told, fault, as_of, True, [], [], *([no_update] * len(_TABLES))
        workflows = found.workflows
        predictions = [p for each in workflows if (p := each.deployed.predicted)]
        warnings = dict.fromkeys(line for each in predictions for line in each.warnings)
        rows = (
            [_workflow(each) for each in workflows],
            [_wrap(wrap) for each in workflows for wrap in each.wraps],
            [row for each in workflows for row in _buckets(each)],
            [row for each in workflows for row in _failures(each)],
            _told(Journal(host().config.state).of(found.gateway)),
        )
        return (
            told,
            fault,
            [f"{url} in the last {OVER_S:g} s, as of ", _time(found.at), " UTC. ", _MEASURED],
            False,
            overview.cards([(each, feed.trend_ms(each)) for each in workflows]) or [html.P(_NONE)],
            [html.P(f"Warning: {line}") for line in warnings],
            *(
                table_rows(each, heads) or html.Tr(html.Td(none, colSpan=len(heads)))
                for each, (_, heads, none) in zip(rows, _TABLES.values(), strict=True)
            ),
        )


_MEASURED = "Entry wraps count requests: the way through the gateway is not in their times."


@cache
def _feed(owner: Host) -> LiveFeed:
    return LiveFeed(owner.config.gateway_url, owner.config.verify_tls)


def _workflow(live: LiveWorkflow) -> list[Any]:
    deployed, latency = live.deployed, live.latency
    predicted = deployed.predicted
    slo_ms = predicted.slo_ms if predicted else None
    return [
        deployed.workflow,
        deployed.planner,
        _number(slo_ms, "g"),
        predicted.shown if predicted else "-",
        _number(live.requests_per_s),
        _number(live.failed_per_s),
        *([_number(each) for each in _times(latency)] if latency else ["-"] * 4),
        _met(live),
        _side(latency, predicted),
    ]


def _times(latency: Latency) -> tuple[float, ...]:
    return latency.mean_ms, latency.p50_ms, latency.p95_ms, latency.p99_ms


def _met(live: LiveWorkflow) -> Any:
    """How many requests met the SLO, and whether that is the percentile that it is for."""
    if live.latency is None or live.latency.within_slo is None:
        return "-"
    word = overview.verdict(live).word
    return html.Span(f"{live.latency.within_slo:.0%}, {word}", className=word)


def _side(latency: Latency | None, predicted: DeployedPrediction | None) -> str:
    """Where the mean is, as seen from the range of the predicted mean."""
    if latency is None or predicted is None:
        return "-"
    low_ms, high_ms = predicted.expected_range_ms
    if latency.mean_ms < low_ms:
        return "below"
    return "above" if latency.mean_ms > high_ms else "yes"


def _wrap(wrap: LiveWrap) -> list[Any]:
    replicas = [wrap.function, f"{wrap.available}/{wrap.replicas}", wrap.heard]
    load = wrap.load
    if load is None:
        return [*replicas, *["-"] * (len(_TABLES["live-wraps"][1]) - len(replicas))]
    sizes = (load.held_bytes, load.spilled_bytes, load.leaving_bytes)
    return [
        *replicas,
        _number(load.in_hand),
        _number(load.waiting),
        *(shown_bytes(round(size)) for size in sizes),
        "-" if load.pressure is None else f"{load.pressure:.0%}",
    ]


def _buckets(live: LiveWorkflow) -> list[list[Any]]:
    return [
        [
            live.deployed.workflow,
            each.bucket,
            *map(_number, (live.events_per_s, each.firings_per_s, each.failed_per_s)),
            *map(_number, (each.p50_ms, each.p99_ms)),
        ]
        for each in live.buckets
    ]


def _failures(live: LiveWorkflow) -> list[list[Any]]:
    return [
        [
            _time(failure.at),
            live.deployed.workflow,
            html.Code(failure.execution),
            failure.function,
            _words([html.Strong(failure.code), f" {failure.message}"]),
        ]
        for failure in live.failures
    ]


def _told(told: list[Told]) -> list[list[Any]]:
    """What watchers told; of the windows in which they only counted, the newest of a workflow."""
    counted = set[tuple[str, str]]()
    rows = []
    for each in told:
        about = (each.workflow, each.planner)
        if each.event != "window" or about not in counted:
            out = f"; {each.outside} in a row outside" if each.outside else ""
            rows.append([_time(each.at), *about, each.event, _words(f"{each.message}{out}")])
        if each.event == "window":
            counted.add(about)
    return rows[:_TOLD]


def _words(content: Any) -> Component:
    """A sentence, to which a narrow page leaves room."""
    return html.Div(content, className="words")


def _number(value: float | None, form: str = ".1f") -> str:
    return "-" if value is None else f"{value:{form}}"


def _time(at: str) -> Component:
    """A time of RFC 3339 in UTC, to the second."""
    return html.Time(at[:19].replace("T", " "), dateTime=at)
