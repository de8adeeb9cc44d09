"""Charts as Mermaid: a state diagram that Markdown pages and editors can draw."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count

from chiron.workflow.chart import BEGIN, END, Chart, Node

#: Characters to escape in a text, as the number of the character.
_PLAIN = re.compile(r"[^\w .,()/+=-]")


def mermaid(chart: Chart, title: str) -> str:
    lines = ["stateDiagram-v2", f"accTitle: {_text(title)}", *_drawn(chart, count(1))]
    return "\n".join(lines) + "\n"


def _drawn(chart: Chart, numbers: Iterator[int]) -> Iterator[str]:
    idents = {BEGIN: "[*]", END: "[*]"}
    for key, node in chart.nodes.items():
        if key not in idents and node.shape != "text":
            idents[key] = f"s{next(numbers)}"
            yield from _state(node, idents[key], numbers)
    labels = {edge.start: edge.end for edge in chart.edges if edge.start not in idents}
    for edge in chart.edges:
        if edge.start in idents:
            text, end = chart.nodes[edge.end], labels.get(edge.end, edge.end)
            said = f" : {_text(text.whole)}" if edge.end in labels else ""
            yield f"{idents[edge.start]} --> {idents[end]}{said}"


def _state(node: Node, ident: str, numbers: Iterator[int]) -> Iterator[str]:
    named = f'state "{_text(node.whole)}" as {ident}'
    if not node.inner:
        yield named
        return
    yield f"{named} {{"
    for place, below in enumerate(node.inner):
        if place:
            yield "--"
        yield from _drawn(below, numbers)
    yield "}"


def _text(text: str) -> str:
    return _PLAIN.sub(lambda found: f"#{ord(found[0])};", text)
