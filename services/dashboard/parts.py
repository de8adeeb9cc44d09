"""Parts that several sections of the page use: errors, figures and tables."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from dash import html
from dash.development.base_component import Component

from chiron.workflow.errors import ChironError

#: The property that ``assets/still.js`` draws into its element; its value is `still` of the parts.
STILL = "data-still"


def labelled(text: str) -> dict[str, Any]:
    """Return the attribute with a screen reader's name for an element."""
    return {"aria-label": text}


def faults_of(error: ChironError) -> list[Component]:
    """Return the error, or the errors that it joins."""
    return faults([each.as_dict() for each in error.parts or (error,)])


def faults(found: list[dict[str, Any]]) -> list[Component]:
    """Return errors with code, message and path, as in the API, and the part of the document."""
    return [
        html.Div(
            [
                html.Strong(fault["code"]),
                html.Span(f" {fault['message']}"),
                *([html.P(["at ", html.Code(fault["path"])])] if fault.get("path") else []),
                *([_written(fault["excerpt"])] if fault.get("excerpt") else []),
            ],
            className="fault",
        )
        for fault in found
    ]


def _written(text: str) -> Component:
    return html.Details([html.Summary("As it is written"), html.Pre(text, tabIndex=0)])


def table(
    caption: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[Any]],
    none: str = "",
    ids: Sequence[str] = (),
) -> Component:
    """Return a table that scrolls sideways, also by keyboard; without rows, the text `none`.

    If rows come and go, `ids` identify them when the table is drawn again.
    """
    if not rows:
        return html.P(none, className="quiet")
    body = [_row(heads, row, name) for row, name in zip_longest(rows, ids)]
    return html.Div(
        html.Table(
            [
                html.Caption(caption),
                html.Thead(html.Tr([html.Th(head, scope="col") for head in heads])),
                html.Tbody(body),
            ]
        ),
        className="scroll",
        tabIndex=0,
        role="region",
        **labelled(caption),
    )


def still(*parts: Component | str) -> str:
    """Return the value of `STILL` that shows `parts` in an element; no callback can use them.

    Dash recreates all children of an output, and checks each of its components whenever anything
    changes: with thousands of components a page takes minutes to settle. Here an element that is in
    the old and in the new parts stays, with its focus, even while it is pressed. An id
    distinguishes it from its siblings.
    """
    return json.dumps([_plain(part) for part in parts])


def link(text: str, address: str) -> Component:
    """Return a link to a page of the dashboard; ``assets/address.js`` shows it without a load."""
    named: dict[str, Any] = {"data-page": address}
    return html.A(text, href=address, **named)


def _plain(part: Any) -> Any:
    """Return a component of `html` as its tag, properties and children, anything else as text."""
    if not isinstance(part, Component):
        return str(part)
    found = part.to_plotly_json()  # type: ignore[no-untyped-call]
    properties = {name: value for name, value in found["props"].items() if value is not None}
    children = properties.pop("children", [])
    inner = children if isinstance(children, list | tuple) else [children]
    return [found["type"].lower(), properties, [_plain(each) for each in inner]]


def _row(heads: Sequence[str], row: Sequence[Any], name: str | None) -> Component:
    """Return a row; each cell has its column's head, which a narrow page shows beside it."""
    cells = [_cell(head, cell) for head, cell in zip(heads, row, strict=True)]
    named: dict[str, Any] = {"id": name} if name else {}
    return html.Tr(cells, **named)


def _cell(head: str, content: Any) -> Component:
    named: dict[str, Any] = {"data-label": head}
    return html.Td(content, **named)


def warned(lines: Iterable[str]) -> list[Component]:
    """Return the reasons why a prediction is unreliable, each once; empty without any."""
    items = [html.Li(line) for line in dict.fromkeys(lines)]
    summary = html.Summary(f"Why the prediction is unreliable ({len(items)})")
    return [html.Details([summary, html.Ul(items)])] if items else []


def facts(named: Mapping[str, Any]) -> Component:
    """Return figures by name, side by side."""
    pairs = [html.Div([html.Dt(name), html.Dd(value)]) for name, value in named.items()]
    return html.Dl(pairs, className="facts")


def empty(title: str, *what_to_do: Component | str) -> Component:
    return html.Div([html.Strong(title), html.P([*what_to_do])], className="empty")


def picture(svg: str) -> str:
    return f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"


def number(value: float | None) -> str:
    """Return a number for people; a dash for None."""
    return "-" if value is None else f"{value:.1f}"


def time(at: str) -> Component:
    """Return a time of RFC 3339 in UTC, to the second."""
    return html.Time(at[:19].replace("T", " "), dateTime=at)
