"""A plan as a graph: tasks belong to processes, those to wraps, to stages, to the workflow."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, get_args

from evaluation.prediction.baselines.function_features import NAMES, function_features
from evaluation.prediction.baselines.samples import Sample
from workflow.profile import FunctionProfile

NodeKind = Literal["workflow", "stage", "wrap", "process", "task"]
_KINDS = get_args(NodeKind)


@dataclass
class Graph:
    """Feature rows of equal length, and (node, node it belongs to) for all but the first."""

    nodes: list[list[float]] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)

    def add(self, row: list[float], parent: int | None) -> int:
        """The number of the new node."""
        number = len(self.nodes)
        self.nodes.append(row)
        if parent is not None:
            self.edges.append((number, parent))
        return number


def plan_graph(sample: Sample) -> Graph:
    """The graph of `sample`; node 0 is the workflow.

    A node's features are its kind, its place among its siblings, how many children and CPUs it
    has, whether it is in a remote wrap and on a pool, and for a task its function's features.
    """
    graph = Graph()
    pool = float(sample.mechanism == "pool")
    workflow = graph.add(_row("workflow", 0, len(sample.stages), pool), None)
    for s, wraps in enumerate(sample.stages):
        stage = graph.add(_row("stage", s, len(wraps), pool), workflow)
        for w, wrap in enumerate(wraps):
            placed = (float(wrap.remote), wrap.cpus)
            holder = graph.add(_row("wrap", w, len(wrap.processes), pool, *placed), stage)
            for p, functions in enumerate(wrap.processes):
                process = graph.add(_row("process", p, len(functions), pool, *placed), holder)
                for t, function in enumerate(functions):
                    graph.add(_row("task", t, 0, pool, *placed, function=function), process)
    return graph


def plan_sequence(sample: Sample) -> Graph:
    """The tasks alone, stage by stage and process by process, each with its ancestors' features."""
    graph = plan_graph(sample)
    parents = dict(graph.edges)
    tasks = [n for n in range(len(graph.nodes)) if graph.nodes[n][_KINDS.index("task")]]
    return Graph([_with_ancestors(graph, task, parents) for task in tasks])


def _with_ancestors(graph: Graph, task: int, parents: dict[int, int]) -> list[float]:
    row = list(graph.nodes[task])
    node = task
    while node in parents:
        node = parents[node]
        row += graph.nodes[node][len(_KINDS) : len(_KINDS) + 2]
    return row


def _row(
    kind: NodeKind,
    place: int,
    children: int,
    pool: float,
    remote: float = 0.0,
    cpus: int = 0,
    *,
    function: FunctionProfile | None = None,
) -> list[float]:
    features = function_features(function) if function else [0.0] * len(NAMES)
    kinds = [float(kind == each) for each in _KINDS]
    return [*kinds, place, math.log1p(children), pool, remote, cpus, *features]
