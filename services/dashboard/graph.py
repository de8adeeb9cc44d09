"""A workflow as the elements of dash-cytoscape: stages from left to right, coloured by a plan."""

from __future__ import annotations

import re
from itertools import accumulate
from math import ceil
from typing import Any

from chiron.workflow.model import Workflow, giver_of, output_name
from chiron.workflow.paths import PATHS
from chiron.workflow.plan import Plan, process_name
from chiron.workflow.profile import Profile

#: Fills of wraps and borders of processes: dark text is readable on every fill.
WRAPS = ("#a6cee3", "#b2df8a", "#fdbf6f", "#cab2d6", "#ffff99", "#fb9a99", "#c7e9e4", "#e5d8bd")
PROCESSES = ("#4d4d4d", "#1f78b4", "#b15928", "#33803a", "#6a3d9a", "#c51b7d")
UNPLANNED = "#d9d9d9"
#: Distances between tasks in pixels, and the most tasks of a stage in a column.
_WIDTH, NODE_HEIGHT, _COLUMN = 320, 70, 12
#: The part of a word that fits into a node: a zero-width space allows a line break after it.
_LONG_WORD = re.compile(r"(\S{18})(?=\S)")
STYLE = [
    {
        "selector": "node",
        "style": {
            "label": "data(label)",
            "shape": "round-rectangle",
            "width": 150,
            "height": 46,
            "background-color": "data(fill)",
            "border-color": "data(border)",
            "border-width": 4,
            "color": "#111",
            "font-size": 13,
            "text-wrap": "wrap",
            "text-max-width": 140,
            "text-valign": "center",
            "min-zoomed-font-size": 5,
        },
    },
    {
        "selector": "edge",
        "style": {
            "label": "data(label)",
            "curve-style": "straight",
            "target-arrow-shape": "triangle",
            "line-color": "#808080",
            "target-arrow-color": "#808080",
            "width": 2,
            "color": "#111",
            "font-size": 11,
            "text-background-color": "#fff",
            "text-background-opacity": 0.9,
            "text-background-padding": 2,
            "min-zoomed-font-size": 6,
        },
    },
]


def elements(
    workflow: Workflow, profile: Profile | None = None, plan: Plan | None = None
) -> list[dict[str, Any]]:
    """Return nodes and edges; sizes come from `profile`, colours and paths from `plan`."""
    places = _places(plan)
    found: list[dict[str, Any]] = []
    for task, (x, y) in _positions(workflow).items():
        label, fill, border = task, UNPLANNED, PROCESSES[0]
        if task in places and plan is not None:
            wrap, process = places[task]
            label = f"{task}\n{plan.wraps[wrap].name}, {process_name(process)}"
            fill = WRAPS[wrap % len(WRAPS)]
            border = PROCESSES[process % len(PROCESSES)]
        label = _LONG_WORD.sub("\\1\u200b", label)
        data = {"id": task, "label": label, "fill": fill, "border": border}
        found.append({"data": data, "position": {"x": x, "y": y}})
    for taker in workflow.tasks:
        for output in taker.needs:
            giver = giver_of(output)
            parts = (_path(giver, taker.name, plan, places), _size(workflow, output, profile))
            label = ", ".join(filter(None, parts))
            name = f"{output} -> {taker.name}"
            data = {"id": name, "source": giver, "target": taker.name, "label": label}
            found.append({"data": data})
    return found


def _places(plan: Plan | None) -> dict[str, tuple[int, int]]:
    """Return the wrap and the process of each task, the first if it has several."""
    places: dict[str, tuple[int, int]] = {}
    for w, wrap in enumerate(plan.wraps if plan else ()):
        for p, process in enumerate(wrap.processes):
            for task in process:
                places.setdefault(task, (w, p))
    return places


def _positions(workflow: Workflow) -> dict[str, tuple[int, int]]:
    """Return the positions of tasks: a stage is a column, or several if it has many tasks."""
    stages = workflow.stages
    columns = [max(1, ceil(len(stage) / max(_COLUMN, ceil(len(stage) ** 0.5)))) for stage in stages]
    found = {}
    for stage, width, first in zip(
        stages, columns, accumulate(columns[:-1], initial=0), strict=True
    ):
        height = ceil(len(stage) / width)
        for index, task in enumerate(stage):
            column, row = divmod(index, height)
            last = min(height, len(stage) - column * height)
            y = row * NODE_HEIGHT - (last - 1) * NODE_HEIGHT // 2
            found[task] = ((first + column) * _WIDTH, y)
    return found


def _path(giver: str, taker: str, plan: Plan | None, places: dict[str, tuple[int, int]]) -> str:
    if plan is None or giver not in places or taker not in places:
        return ""
    if plan.orchestrator == "client":
        return "by the client"
    if places[giver] == places[taker]:
        return "same process"
    if places[giver][0] == places[taker][0]:
        return "same wrap"
    return " or ".join(PATHS[plan.path].paths)


def _size(workflow: Workflow, output: str, profile: Profile | None) -> str:
    giver = giver_of(output)
    function = profile and profile.functions.get(workflow.function_of(giver))
    if not function:
        return ""
    if giver == output:
        return shown_bytes(function.output_bytes)
    emission = function.emits.get(output_name(output))
    return shown_bytes(emission.bytes) if emission else ""


def shown_bytes(size: int) -> str:
    """Return a size for people."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024 or unit == "MiB":
            break
        size = round(size / 1024)
    return f"{size} {unit}"
