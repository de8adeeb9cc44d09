"""The sections of a workflow's page that have its wraps, its executions and what watch did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import html
from dash.development.base_component import Component

from chiron.deployment.journal import Told
from chiron.deployment.live import LiveWorkflow, LiveWrap
from chiron.services.dashboard.graph import shown_bytes
from chiron.services.dashboard.parts import facts, number, table, table_rows, time

#: What watchers told, the newest of it that is shown.
_TOLD = 12
#: The tables: the id of their rows, caption, what each column has, and what there is to say if
#: there are no rows.
TABLES = {
    "live-wraps": (
        "Wraps as they are deployed, all replicas of each together",
        [
            *("Wrap", "Functions", "Replicas", "Answering", "In hand", "Waiting"),
            *("In memory", "On disk", "Leaving", "Held back"),
        ],
        "None.",
    ),
    "live-buckets": (
        "Buckets, with delays in ms from when they had to fire",
        [
            *("Workflow", "Bucket", "Events/s of the workflow", "Firings/s", "Failed/s"),
            *("Delay p50", "p99"),
        ],
        "None.",
    ),
    "live-failures": (
        "The last executions that failed",
        ["At (UTC)", "Execution", "Function", "Error"],
        "None, as far as the logs go back.",
    ),
    "live-told": (
        "What chiron watch saw and decided",
        ["At (UTC)", "Planner", "Event", "Message"],
        "Nothing yet. To keep the workflow at its SLO, run chiron watch with its folder as the "
        "user who serves this page.",
    ),
}


def layout() -> tuple[Component, list[Component]]:
    """The section of the deployed plan, and those of what happens; a workflow's page has them."""
    made = {body: table(caption, heads, [], body) for body, (caption, heads, _) in TABLES.items()}
    return _section("wraps", "Deployed plan", [made["live-wraps"], made["live-buckets"]]), [
        _section(
            "executions", "Executions", [html.Div(id="live-executions"), made["live-failures"]]
        ),
        _section("watch", "Watch", [made["live-told"]]),
    ]


def _section(name: str, title: str, children: list[Component]) -> Component:
    return html.Section([html.H2(title), *children], id=name, className="one-only")


def executions(found: Sequence[LiveWorkflow]) -> list[Component]:
    """How many requests run, came and failed, and the last failure."""
    shown = []
    for live in found:
        loads = [wrap.load for wrap in live.wraps if wrap.load]
        failure = next(iter(live.failures), None)
        shown.append(
            facts(
                {
                    "Running in wraps": f"{sum(load.in_hand for load in loads):.0f}"
                    if loads
                    else "-",
                    "Waiting in wraps": f"{sum(load.waiting for load in loads):.0f}"
                    if loads
                    else "-",
                    "Requests since it was deployed": f"{live.deployed.calls:.0f}",
                    "Failed/s": number(live.failed_per_s),
                    "Last failure": time(failure.at) if failure else "none",
                }
            )
        )
    return shown


def rows(found: Sequence[LiveWorkflow], told: Sequence[Told]) -> list[list[Component] | Component]:
    """The rows of each of `TABLES`, or what there is to say without rows."""
    listed = (
        [_wrap(wrap) for each in found for wrap in each.wraps],
        [row for each in found for row in _buckets(each)],
        [row for each in found for row in _failures(each)],
        _told(told),
    )
    return [
        table_rows(each, heads) or html.Tr(html.Td(none, colSpan=len(heads)))
        for each, (_, heads, none) in zip(listed, TABLES.values(), strict=True)
    ]


def _wrap(wrap: LiveWrap) -> list[Any]:
    replicas = [
        wrap.function,
        _words(", ".join(wrap.runs)),
        f"{wrap.available}/{wrap.replicas}",
        wrap.heard,
    ]
    load = wrap.load
    if load is None:
        return [*replicas, *["-"] * (len(TABLES["live-wraps"][1]) - len(replicas))]
    sizes = (load.held_bytes, load.spilled_bytes, load.leaving_bytes)
    return [
        *replicas,
        number(load.in_hand),
        number(load.waiting),
        *(shown_bytes(round(size)) for size in sizes),
        "-" if load.pressure is None else f"{load.pressure:.0%}",
    ]


def _buckets(live: LiveWorkflow) -> list[list[Any]]:
    return [
        [
            live.deployed.workflow,
            each.bucket,
            *map(number, (live.events_per_s, each.firings_per_s, each.failed_per_s)),
            *map(number, (each.p50_ms, each.p99_ms)),
        ]
        for each in live.buckets
    ]


def _failures(live: LiveWorkflow) -> list[list[Any]]:
    return [
        [
            time(failure.at),
            html.Code(failure.execution),
            failure.function,
            _words([html.Strong(failure.code), f" {failure.message}"]),
        ]
        for failure in live.failures
    ]


def _told(told: Sequence[Told]) -> list[list[Any]]:
    """What watchers told; of the windows in which they only counted, the newest of a planner."""
    counted = set[str]()
    listed = []
    for each in told:
        if each.event != "window" or each.planner not in counted:
            out = f"; {each.outside} in a row outside" if each.outside else ""
            what = _words(f"{each.message}{out}")
            listed.append([time(each.at), each.planner, each.event, what])
        if each.event == "window":
            counted.add(each.planner)
    return listed[:_TOLD]


def _words(content: Any) -> Component:
    """A sentence, to which a narrow page leaves room."""
    return html.Div(content, className="words")
