"""What several sections of the page are made of: errors and tables."""

from __future__ import annotations

from typing import Any

from dash import html
from dash.development.base_component import Component

from workflow.errors import ChironError


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
                *([html.Pre(fault["excerpt"], tabIndex=0)] if fault.get("excerpt") else []),
            ],
            className="fault",
        )
        for fault in found
    ]


def table(caption: str, heads: list[str], rows: list[list[Any]], body: str = "") -> Component:
    """A table that can be scrolled sideways, also by keyboard.

    Where rows change, they are to be the new children of its `body`, by this id: what has the
    focus then keeps it.
    """
    name: dict[str, Any] = {"id": body} if body else {}
    return html.Div(
        html.Table(
            [
                html.Caption(caption),
                html.Thead(html.Tr([html.Th(head, scope="col") for head in heads])),
                html.Tbody(table_rows(rows), **name),
            ]
        ),
        className="scroll",
        tabIndex=0,
        role="region",
        **labelled(caption),
    )


def table_rows(rows: list[list[Any]]) -> list[Component]:
    """Rows of a table."""
    return [html.Tr([html.Td(cell) for cell in row]) for row in rows]
