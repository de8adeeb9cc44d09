"""Charts as SVG: one self-contained file, in light and dark mode."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from chiron.workflow.chart import Chart
from chiron.workflow.chart_layout import LETTER, LINE, Layout, Placed, Route, layout

_MARGIN, _HEAD = 24.0, 34.0
_STYLE = """
 svg { --paper: #fff; --ink: #1f2328; --dim: #59636e; --line: #6e7781; --warm: #9a6700;
  --task: #ddf4ff; --task-line: #54aeff; --choice: #fff8c5; --choice-line: #d4a72c;
  --state: #f6f8fa; --state-line: #afb8c1; --box: none; background: var(--paper); }
 @media (prefers-color-scheme: dark) { svg { --paper: #0d1117; --ink: #e6edf3; --dim: #9198a1;
  --line: #8b949e; --warm: #d29922; --task: #0c2d4f; --task-line: #388bfd; --choice: #3b2f0a;
  --choice-line: #bb8009; --state: #161b22; --state-line: #484f58; } }
 text { font: 12px system-ui, sans-serif; fill: var(--dim); text-anchor: middle; }
 text.name { font-weight: 600; fill: var(--ink); } text.title { font-size: 15px; }
 text.left { text-anchor: start; } text.warm { fill: var(--warm); }
 .task { fill: var(--task); stroke: var(--task-line); }
 .choice { fill: var(--choice); stroke: var(--choice-line); }
 .state { fill: var(--state); stroke: var(--state-line); }
 .box { fill: none; stroke: var(--state-line); stroke-width: 1.5; }
 .dot { fill: var(--ink); } .edge { fill: none; stroke: var(--line); }
 .dashed { stroke: var(--warm); stroke-dasharray: 5 4; }
 .head { fill: var(--line); } .head.warm { fill: var(--warm); }
"""


def svg(chart: Chart, title: str) -> str:
    placed = layout(chart)
    wide = max(placed.wide, LETTER * 1.3 * len(title)) + 2 * _MARGIN
    high = placed.high + 2 * _MARGIN + _HEAD
    size = f'width="{wide:.0f}" height="{high:.0f}" viewBox="0 0 {wide:.0f} {high:.0f}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            f"<title>{_text(title)}</title>",
            f"<style>{_STYLE}</style>",
            "<defs>",
            _arrow("arrow", "head"),
            _arrow("arrow-warm", "head warm"),
            "</defs>",
            f'<text class="name title left" x="{_MARGIN}" y="{_MARGIN}">{_text(title)}</text>',
            *_drawn(placed, (wide - placed.wide) / 2, _MARGIN + _HEAD),
            "</svg>\n",
        ]
    )


def _arrow(name: str, style: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto-start-reverse"><path class="{style}" d="M0 0L8 4L0 8z"/></marker>'
    )


def _drawn(of: Layout, x: float, y: float) -> Iterator[str]:
    for route in of.routes:
        yield _edge(route, x, y, of.nodes[route.edge.end])
    for each in of.nodes.values():
        yield f'<g transform="translate({x + each.x:.1f} {y + each.y:.1f})">'
        yield f"<title>{_text(each.node.whole or each.node.key)}</title>"
        yield from _node(each)
        yield "</g>"


def _edge(route: Route, x: float, y: float, end: Placed) -> str:
    points = [(x + across, y + down) for across, down in route.points]
    (across, down), *more = points
    drawn = f"M{across:.1f} {down:.1f}"
    if route.lane is not None:
        to_x, to_y = more[0]
        drawn += f"H{x + route.lane:.1f}V{to_y:.1f}H{to_x:.1f}"
    else:
        for to_x, to_y in more:
            half = (down + to_y) / 2
            drawn += f"C{across:.1f} {half:.1f} {to_x:.1f} {half:.1f} {to_x:.1f} {to_y:.1f}"
            across, down = to_x, to_y
    warm = "-warm" if route.edge.dashed else ""
    head = "" if end.node.shape == "text" else f' marker-end="url(#arrow{warm})"'
    return f'<path class="edge{" dashed" * route.edge.dashed}" d="{drawn}"{head}/>'


def _node(each: Placed) -> Iterator[str]:
    node, half, high = each.node, each.wide / 2, each.high
    middle = high / 2
    if node.shape == "dot":
        yield f'<circle class="dot" cx="0" cy="{middle:.1f}" r="5"/>'
        yield f'<text class="left" x="10" y="{middle + 4:.1f}">{_text(node.lines[0])}</text>'
        return
    if node.shape == "choice":
        corners = f"M0 0L{half:.1f} {middle:.1f}L0 {high:.1f}L{-half:.1f} {middle:.1f}z"
        yield f'<path class="choice" d="{corners}"/>'
    elif node.shape != "text":
        yield (
            f'<rect class="{node.shape}" x="{-half:.1f}" y="0" width="{2 * half:.1f}" '
            f'height="{high:.1f}" rx="6"/>'
        )
    top = 18.0 if node.shape == "box" else middle - LINE * len(node.lines) / 2 + 13
    for index, line in enumerate(node.lines):
        style = "" if index else "warm" if node.warm else "name" * (node.shape != "text")
        yield f'<text class="{style}" x="0" y="{top + LINE * index:.1f}">{_text(line)}</text>'
    for left, down, inside in each.inner:
        yield from _drawn(inside, left - half, down)
    if node.again:
        yield (
            f'<path class="edge dashed" marker-end="url(#arrow-warm)" '
            f'd="M{half:.1f} {middle + 9:.1f}h20v-18h-18"/>'
        )
        yield (
            f'<text class="left warm" x="{half + 25:.1f}" y="{middle + 4:.1f}">'
            f"{_text(node.again)}</text>"
        )


def _text(text: str) -> str:
    """Escape `text` for XML, which allows no control characters."""
    return escape("".join(c if c.isprintable() else " " for c in text))
