"""The layout of a chart's nodes: in layers, with every edge downwards except those that lead back.

References
----------
Sugiyama, Tagawa and Toda (1981): layers, the order in them by the mean of the neighbours, places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from chiron.workflow.chart import Chart, Edge, Node, width

#: The width of a letter and the height of a line, in pixels.
LETTER, LINE = 7.0, 17.0
_GAP_X, _GAP_Y, _LANE = 26.0, 38.0, 14.0
_SWEEPS = 8


@dataclass
class Placed:
    """A node with its centre, top and size in pixels; a box's charts relative to its corner."""

    node: Node
    x: float = 0.0
    y: float = 0.0
    #: The begin and end of its layer, across which edges run straight.
    layer: tuple[float, float] = (0.0, 0.0)
    wide: float = 0.0
    high: float = 0.0
    inner: list[tuple[float, float, Layout]] = field(default_factory=list)

    @property
    def loop(self) -> float:
        """The width of the retry arrow at its right."""
        return 30.0 + LETTER * width(self.node.again) if self.node.again else 0.0


@dataclass
class Route:
    """An edge and its points from top to bottom; `lane` is set if it leads back."""

    edge: Edge
    points: list[tuple[float, float]]
    lane: float | None = None

    def moved(self, right: float) -> Route:
        points = [(x + right, y) for x, y in self.points]
        return Route(self.edge, points, None if self.lane is None else self.lane + right)


@dataclass
class Layout:
    """A placed chart, with its size in pixels."""

    nodes: dict[str, Placed]
    routes: list[Route]
    wide: float
    high: float


def layout(chart: Chart) -> Layout:
    """Place all elements of `chart`."""
    placed = {key: _sized(node) for key, node in chart.nodes.items()}
    graph, forward, back = _parted(chart)
    layers, chains = _layers(placed, forward, graph)
    _place_across(layers, chains)
    y = 0.0
    for layer in layers:
        high = max(each.high for each in layer)
        for each in layer:
            each.y, each.layer = y + (high - each.high) / 2, (y, y + high)
        y += high + _GAP_Y
    wide = max(each.x + each.wide / 2 + each.loop for layer in layers for each in layer)
    routes = [_route(edge, chains[index]) for index, edge in enumerate(forward)]
    for count, edge in enumerate(back, start=1):
        ends = [placed[edge.start], placed[edge.end]]
        left = bool(ends[1].loop) or ends[0].x < wide / 2
        side = -0.5 if left else 0.5
        points = [(each.x + side * each.wide, each.y + each.high / 2) for each in ends]
        routes.append(Route(edge, points, -count * _LANE if left else wide + count * _LANE))
    room = (len(back) + 1) * _LANE if back else 0.0
    for each in placed.values():
        each.x += room
    moved = [route.moved(room) for route in routes]
    return Layout(placed, moved, wide + 2 * room, y - _GAP_Y)


def _sized(node: Node) -> Placed:
    placed = Placed(node)
    text = LETTER * max(map(width, node.lines), default=0)
    if node.shape == "text":
        placed.wide, placed.high = text + 8, LINE
    elif node.shape == "dot":
        placed.wide, placed.high = text + 44, LINE
    elif node.shape == "choice":
        placed.wide, placed.high = text * 1.3 + 56, 2.6 * LINE
    else:
        placed.wide, placed.high = text + 28, LINE * len(node.lines) + 16
    if node.shape == "box":
        x, top = 16.0, placed.high
        for chart in node.inner:
            drawn = layout(chart)
            placed.inner.append((x, top, drawn))
            x += drawn.wide + _GAP_X
            placed.high = max(placed.high, top + drawn.high + 16)
        inside = x - _GAP_X + 16
        shift = max(placed.wide - inside, 0.0) / 2
        placed.inner = [(left + shift, down, each) for left, down, each in placed.inner]
        placed.wide = max(placed.wide, inside)
    return placed


def _parted(chart: Chart) -> tuple[Any, list[Edge], list[Edge]]:
    """Return the chart without cycles as a graph, its edges, and the edges that lead back."""
    import networkx as nx  # loaded on use: it costs more than all other imports of a command

    entered = {edge.end for edge in chart.edges}
    graph: Any = nx.DiGraph()
    graph.add_nodes_from(sorted(chart.nodes, key=entered.__contains__))
    graph.add_edges_from((edge.start, edge.end) for edge in chart.edges)
    begun = set[str]()
    for start, end, kind in list(nx.dfs_labeled_edges(graph)):
        if kind == "forward":
            begun.add(end)
        elif kind == "reverse":
            begun.remove(end)
        elif end in begun:
            graph.remove_edge(start, end)
    forward = [edge for edge in chart.edges if graph.has_edge(edge.start, edge.end)]
    return graph, forward, [edge for edge in chart.edges if edge not in forward]


#: The nodes that an edge passes, including its ends; inner nodes are points in a layer.
_Chains = list[list[Placed]]


def _layers(
    placed: Mapping[str, Placed], edges: Sequence[Edge], graph: Any
) -> tuple[list[list[Placed]], _Chains]:
    import networkx as nx

    levels = {
        name: depth
        for depth, names in enumerate(nx.topological_generations(graph))
        for name in names
    }
    layers: list[list[Placed]] = [[] for _ in range(max(levels.values()) + 1)]
    for name, each in placed.items():
        layers[levels[name]].append(each)
    chains = []
    for edge in edges:
        chain = [placed[edge.start]]
        for level in range(levels[edge.start] + 1, levels[edge.end]):
            point = Placed(Node("", "text"), wide=8.0)
            layers[level].append(point)
            chain.append(point)
        chains.append([*chain, placed[edge.end]])
    return layers, chains


def _place_across(layers: list[list[Placed]], chains: _Chains) -> None:
    """Order every layer by its neighbours' positions and place it near them."""
    above: dict[int, list[Placed]] = {}
    below: dict[int, list[Placed]] = {}
    for chain in chains:
        for one, other in pairwise(chain):
            below.setdefault(id(one), []).append(other)
            above.setdefault(id(other), []).append(one)
    for layer in layers:
        _spread(layer, [0.0] * len(layer))
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else layers[::-1]:
            near = above if down else below
            wanted = {id(each): _mean(near.get(id(each), [each])) for each in layer}
            if sweep < _SWEEPS / 2:
                layer.sort(key=lambda each: wanted[id(each)])
            _spread(layer, [wanted[id(each)] for each in layer])
    left = min(each.x - each.wide / 2 for layer in layers for each in layer)
    for layer in layers:
        for each in layer:
            each.x -= left


def _mean(near: Sequence[Placed]) -> float:
    return sum(each.x for each in near) / len(near)


def _spread(layer: Sequence[Placed], wanted: Sequence[float]) -> None:
    """Place a layer in order, without overlaps, as near as possible to the `wanted` positions."""
    offsets, offset = [], 0.0
    for index, each in enumerate(layer):
        if index:
            before = layer[index - 1]
            offset += before.wide / 2 + before.loop + _GAP_X + each.wide / 2
        offsets.append(offset)
    # Pool the means of overlapping neighbours: least squares under the given order.
    pools: list[list[float]] = []
    for want, at in zip(wanted, offsets, strict=True):
        pools.append([want - at, 1.0])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            value, count = pools.pop()
            other, more = pools[-1]
            pools[-1] = [(value * count + other * more) / (count + more), count + more]
    starts: Iterable[float] = (value for value, count in pools for _ in range(int(count)))
    for each, at, start in zip(layer, offsets, starts, strict=True):
        each.x = start + at


def _route(edge: Edge, chain: Sequence[Placed]) -> Route:
    first, *between, last = chain
    points = [(first.x, first.y + first.high), (first.x, first.layer[1])]
    points += [(each.x, y) for each in between for y in each.layer]
    points += [(last.x, last.layer[0]), (last.x, last.y)]
    return Route(edge, list(dict.fromkeys(points)))
