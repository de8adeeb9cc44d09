"""What several sections of the page are made of: errors, figures and tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dash import html
from dash.development.base_component import Component

from chiron.workflow.errors import ChironError


def labelled(text: str) -> dict[str, Any]:
    """The attribute with what a screen reader says of an element."""
    return {"aria-label": text}


def faults_of(error: ChironError) -> list[Component]:
    """The error, or those that it joins."""
    return faults([each.as_dict() for each in error.parts or (error,)])


def faults(found: list[dict[str, Any]]) -> list[Component]:
    """Errors as the API has them: code, message and path, with the part of the document."""
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


def table(caption: str, heads: list[str], rows: list[list[Any]], body: str = "") -> Component:
    """A table that can be scrolled sideways, also by keyboard.

    Where rows change, they are to be the new children of its `body`, by this id: what has the
    focus then keeps it. A table in which nothing has an id is `still`.
    """
    name: dict[str, Any] = {"id": body} if body else {}
    made = html.Div(
        html.Table(
            [
                html.Caption(caption),
                html.Thead(html.Tr([html.Th(head, scope="col") for head in heads])),
                html.Tbody(table_rows(rows, heads), **name),
            ]
        ),
        className="scroll",
        tabIndex=0,
        role="region",
        **labelled(caption),
    )
    ids: Iterator[Any] = made._traverse_ids()  # type: ignore[no-untyped-call]
    return made if any(True for _ in ids) else still(made)


def still(part: Component) -> Component:
    """`part`, which no callback knows, as one component of Dash, drawn by ``assets/still.js``.

    Dash looks at each of its components whenever anything changes: with thousands of them a page
    takes minutes to settle.
    """
    drawn: dict[str, Any] = {"data-still": json.dumps(_plain(part))}
    return html.Div(**drawn)


def _plain(part: Any) -> Any:
    """A component of `html` as its tag, properties and children; other things as text."""
    if not isinstance(part, Component):
        return str(part)
    found = part.to_plotly_json()  # type: ignore[no-untyped-call]
    properties = {name: value for name, value in found["props"].items() if value is not None}
    children = properties.pop("children", [])
    inner = children if isinstance(children, list | tuple) else [children]
    return [found["type"].lower(), properties, [_plain(each) for each in inner]]


def table_rows(rows: list[list[Any]], heads: Sequence[str]) -> list[Component]:
    """Rows of a table; each cell knows its head, which a narrow page writes beside it."""
    return [
        html.Tr([_cell(head, cell) for head, cell in zip(heads, row, strict=True)]) for row in rows
    ]


def _cell(head: str, content: Any) -> Component:
    named: dict[str, Any] = {"data-label": head}
    return html.Td(content, **named)


def facts(named: Mapping[str, Any]) -> Component:
    """Figures by name, side by side."""
    pairs = [html.Div([html.Dt(name), html.Dd(value)]) for name, value in named.items()]
    return html.Dl(pairs, className="facts")


def empty(title: str, what_to_do: list[Any]) -> Component:
    """What stands in the place of what is not there."""
    return html.Div([html.Strong(title), html.P(what_to_do)], className="empty")


def number(value: float | None) -> str:
    """A number as people read it; a dash for None."""
    return "-" if value is None else f"{value:.1f}"


def time(at: str) -> Component:
    """A time of RFC 3339 in UTC, to the second."""
    return html.Time(at[:19].replace("T", " "), dateTime=at)
