"""The sections of a workflow's page with its wraps, its executions and the actions of watch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import html
from dash.development.base_component import Component

from chiron.deployment.journal import WatchEvent
from chiron.deployment.live import LiveWorkflow, LiveWrap
from chiron.services.dashboard.graph import shown_bytes
from chiron.services.dashboard.parts import facts, number, still, table, time

#: The newest events of watchers that are shown.
_MAX_EVENTS = 12
#: The elements that show them, one per section.
PLACES = ("live-wraps", "live-executions", "live-told")
_WRAPS = (
    *("Wrap", "Functions", "Replicas", "Answering", "In hand", "Waiting"),
    *("In memory", "On disk", "Leaving", "Held back"),
)
_BUCKETS = ("Bucket", "Events/s of the workflow", "Firings/s", "Failed/s", "Delay p50", "p99")


def layout() -> tuple[Component, list[Component]]:
    """Return the section of the deployed plan, and those of events, for a workflow's page."""
    titles = (("wraps", "Deployed plan"), ("executions", "Executions"), ("watch", "Watch"))
    sections: list[Component] = [
        html.Section([html.H2(title), html.Div(id=place)], id=name, className="one-only")
        for (name, title), place in zip(titles, PLACES, strict=True)
    ]
    return sections[0], sections[1:]


def shown(found: Sequence[LiveWorkflow], events: Sequence[WatchEvent]) -> tuple[str, str, str]:
    """Return the content of `PLACES` for a workflow, with every planner that it is deployed by."""
    wraps = [_wrap(wrap) for each in found for wrap in each.wraps]
    buckets = [row for each in found for row in _buckets(each)]
    failures = [row for each in found for row in _failures(each)]
    return (
        still(
            table(
                "Wraps as they are deployed, all replicas of each together", _WRAPS, wraps, "None."
            ),
            table("Buckets, with delays in ms from when they had to fire", _BUCKETS, buckets),
        ),
        still(
            *executions(found),
            table(
                "The last executions that failed",
                ["At (UTC)", "Execution", "Function", "Error"],
                failures,
                "No execution has failed, as far as the logs go back.",
            ),
        ),
        still(
            table(
                "What chiron watch saw and decided",
                ["At (UTC)", "Planner", "Event", "Message"],
                _event_rows(events),
                "Nothing yet. To keep the workflow at its SLO, run chiron watch with its folder as "
                "the user who serves this page.",
            )
        ),
    )


def executions(found: Sequence[LiveWorkflow]) -> list[Component]:
    """Return the running, waiting and failed requests, and the last failure."""
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
                    "Failed/s": number(live.failed_per_s),
                    "Last failure": time(failure.at) if failure else "none",
                }
            )
        )
    return shown


def _wrap(wrap: LiveWrap) -> list[Any]:
    replicas = [
        wrap.function,
        _words(", ".join(wrap.runs)),
        f"{wrap.available}/{wrap.replicas}",
        wrap.heard,
    ]
    load = wrap.load
    if load is None:
        return [*replicas, *["-"] * (len(_WRAPS) - len(replicas))]
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


def _event_rows(events: Sequence[WatchEvent]) -> list[list[Any]]:
    """Return the events of watchers; of mere counting windows, only the newest of a planner."""
    counted = set[str]()
    listed = []
    for each in events:
        if each.event != "window" or each.planner not in counted:
            out = f"; {each.outside} in a row outside" if each.outside else ""
            what = _words(f"{each.message}{out}")
            listed.append([time(each.at), each.planner, each.event, what])
        if each.event == "window":
            counted.add(each.planner)
    return listed[:_MAX_EVENTS]


def _words(content: Any) -> Component:
    """Return a sentence in an element that a narrow page leaves space for."""
    return html.Div(content, className="words")
