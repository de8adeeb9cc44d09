"""The dashboard's data of a workflow folder and of a plan, computed within limits.

These functions run in processes of `chiron.services.child`; their results are JSON.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any

from chiron.profiler.holding import profiled_source
from chiron.scheduler.choices import Choices
from chiron.scheduler.diff import figures, moves
from chiron.scheduler.folder_settings import FolderSettings, read_settings
from chiron.scheduler.options import Option
from chiron.scheduler.pareto import considered, undominated, weights
from chiron.scheduler.planners import DEFAULT_PLANNER, PLANNERS, searched
from chiron.scheduler.schedule import fixed_by, job_of, options_of
from chiron.scheduler.strategies import better
from chiron.services.archives import unpack
from chiron.services.dashboard.graph import elements
from chiron.services.dashboard.outline import outline
from chiron.services.folders import named_folder, uploaded_folder
from chiron.services.planning import ScheduleRequest, parse_schedule_request, scheduled
from chiron.workflow.chart import chart_of
from chiron.workflow.chart_svg import svg
from chiron.workflow.documents import parse_json, read_document
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import (
    WorkflowFolder,
    check_links,
    read_function_names,
    stack_file_in,
)
from chiron.workflow.forms import read_written, workflow_file, workflow_folders
from chiron.workflow.plan import Plan
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile

#: The most lines of a document that are shown with a fault.
_EXCERPT_LINES = 30
#: The most folders that are searched for a workflow.
_FOLDERS = 200
#: The largest example request that is shown, in bytes.
_REQUEST_BYTES = 100_000
#: The time limit of the search for plans of the front, in seconds.
_FRONT_S = 5.0
_MEASURED: tuple[tuple[str, type[Profile | Platform]], ...] = (
    ("profile", Profile),
    ("platform", Platform),
)


def look_at_named(directory: str, root: Path, variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the data of the folder `directory` below `root`; see `_look`.

    Verbs that run in `root` store their measurements there or in ``out``.
    """
    found = Path(named_folder(directory, root, variables))
    return _look(found, variables, (root, root / "out"))


def find_named(workflow: str, root: Path) -> str | None:
    """Return the folder of `workflow` near below `root`, relative to it; None if there is none."""
    levels = (workflow_folders(root, depth) for depth in ("", "*/", "*/*/"))
    for path in islice(chain.from_iterable(levels), _FOLDERS):
        with suppress(ChironError):  # another folder may be broken
            if WorkflowFolder.open(path).workflow.name == workflow:
                return str(path.relative_to(root))
    return None


def look_at_upload(packed: Path, target: Path) -> dict[str, Any]:
    """Unpack the archive `packed` to `target` and return the data of its folder; see `_look`.

    Without a stack.yaml the folder need not be deployable: a workflow is enough to show it.
    """
    with packed.open("rb") as archive:
        path = unpack(archive, target)
    if stack_file_in(path).exists():
        if wrong := _wrong(path):
            return wrong
        shutil.rmtree(target)
        path = Path(uploaded_folder(packed, target))
    return _look(path, {})


def _look(path: Path, variables: Mapping[str, str], kept: Sequence[Path] = ()) -> dict[str, Any]:
    """Return ``known``, the available parts of a `ScheduleRequest`, and the page's data of them.

    Measurements are read from the folder, or else from a folder in `kept`, as ``found`` then says.
    For an invalid workflow, return ``faults`` instead, each with an excerpt of its place, and the
    ``graph`` of a state machine.

    Raises the errors of the other files.
    """
    if wrong := _wrong(path):
        return wrong
    folder = WorkflowFolder.open(path)
    known: dict[str, Any] = {
        "workflow": parse_json(folder.text, "the workflow"),
        "functions": read_function_names(path),
        "name": folder.workflow.name,
    }
    profile, found = None, list[str]()
    for name, model in _MEASURED:
        file = path / f"{name}.json"
        read: Profile | Platform | None = None
        if file.exists():
            check_links(file, path)
            read = read_document(model, file, file.name)
        elif kept:
            read, told = _kept(name, folder, kept)
            found += told
        if read is not None:
            known[name] = read.model_dump(mode="json")
            profile = read if isinstance(read, Profile) else profile
    known |= _settings(read_settings(folder, variables))
    tasks = [
        [task.name, task.function, str(number), ", ".join(task.predecessors) or "request"]
        for number, stage in enumerate(folder.workflow.stages, start=1)
        for task in map(folder.workflow.by_name.__getitem__, stage)
    ]
    decides = folder.workflow.machine is not None
    return {
        "known": known,
        "name": folder.workflow.name,
        "tasks": tasks,
        "graph": elements(folder.workflow, profile),
        "svg": svg(chart_of(folder.workflow), folder.workflow.name) if decides else None,
        "request": _request(folder),
        "found": found,
    }


def _kept(
    name: str, folder: WorkflowFolder, places: Sequence[Path]
) -> tuple[Profile | Platform | None, list[str]]:
    """Return the measurement of a verb in `places`, a profile only of this code, with a line on it.

    All places are in the first place.
    """
    source, top = profiled_source(folder), places[0]
    for file in (place / f"{name}.json" for place in places):
        shown = file.relative_to(top)
        with suppress(ChironError):  # the file is missing, or has another format
            if name == "platform":
                platform = read_document(Platform, file, file.name)
                return platform, [f"Its platform is that of {shown}, of {platform.place}. "]
            profile = read_document(Profile, file, file.name)
            if profile.workflow == folder.workflow.name and profile.source == source:
                return profile, [f"Its profile is that of {shown}. "]
    return None, []


def _request(folder: WorkflowFolder) -> str:
    """Return the folder's first example request if it is readable text."""
    content = next((payload.content for payload in folder.payloads()), b"{}")
    with suppress(UnicodeDecodeError):
        if len(content) <= _REQUEST_BYTES:
            return content.decode()
    return "{}"


def plan_of(body: ScheduleRequest, kept: Plan | None = None) -> dict[str, Any]:
    """Return the API's answer to `body` as ``plan``, with its ``graph``.

    With a `kept` plan, also the ``figures`` and ``moves`` by which the plan differs from it.
    """
    found = scheduled(body)
    plan = Plan.model_validate_json(json.dumps(found))
    graph = elements(body.parsed, body.profile, plan)
    if kept is None:
        return {"plan": found, "graph": graph}
    differences = {"figures": figures(kept, plan), "moves": list(moves(kept, plan))}
    return {"plan": found, "graph": graph, **differences}


def front_of(body: ScheduleRequest) -> list[dict[str, Any]]:
    """Return the plans on the front of CPUs and latency, and the plans of the other planners.

    Each has the planner and the SLO that find it, and its figures. The plans on the front are those
    that `DEFAULT_PLANNER` finds with the strategy ``cost``.
    """
    workflow, slo_ms, settings = parse_schedule_request(body)
    job = job_of(workflow, body.profile, body.platform, slo_ms, body, settings)
    front: list[Option] = []
    for option in reversed(undominated(considered(job, body.mechanism, _FRONT_S))):
        if not front or option.plan.cpus < front[-1].plan.cpus:
            front.append(option)
    points = [_point(DEFAULT_PLANNER, option, body) for option in front[::-1]]
    options = options_of(job, body.mechanism)
    for planner in PLANNERS:
        if not searched(planner):
            with suppress(ChironError):  # a workflow that the planner has no plan for
                found = min(fixed_by(planner, options), key=better("latency", slo_ms))
                found.plan.check_against(workflow)
                points.append(_point(planner, found, body))
    return points


def _point(planner: str, option: Option, choices: Choices) -> dict[str, Any]:
    latency_ms, cpus, memory = weights(option)
    return {
        "planner": planner,
        "percentile": choices.percentile,
        "latency_ms": latency_ms,
        "cpus": cpus,
        "memory_mib": memory,
        "wraps": len(option.plan.wraps),
    }


def _settings(settings: FolderSettings) -> dict[str, Any]:
    """Return the settings as in a `ScheduleRequest`, with numbers for the values of variables.

    The scheduler only compares the values, and they may be secret.
    """
    numbers: dict[str, str] = {}
    return {
        "constraints": settings.constraints.model_dump(mode="json"),
        "environments": {
            function: {
                name: numbers.setdefault(value, str(len(numbers)))
                for name, value in variables.items()
            }
            for function, variables in settings.environments.items()
        },
        "secrets": {function: list(names) for function, names in settings.secrets.items()},
    }


def _wrong(path: Path) -> dict[str, Any]:
    try:
        WorkflowFolder.open(path)
    except ChironError as error:
        parts = error.parts or (error,)
        document = None
        with suppress(ChironError):
            file = workflow_file(path)
            document = read_written(file).document if file else None
        place = f"{path.parent}/"
        faults = [
            part.as_dict()
            | {"message": part.message.replace(place, ""), "excerpt": _excerpt(document, part.path)}
            for part in parts
        ]
        return {"faults": faults, "graph": outline(document, faults)}
    return {}


def _excerpt(document: Any, path: str | None) -> str:
    """Return the smallest part of `document` around `path`, with the field's name, as text."""
    found, name = document, ""
    for key in (path or "").split("."):
        if not isinstance(found, dict) or not isinstance(found.get(key), dict):
            break
        found, name = found[key], key
    if not name:
        return ""
    lines = json.dumps({name: found}, indent=2, ensure_ascii=False).splitlines()
    cut = ["..."] * (len(lines) > _EXCERPT_LINES)
    return "\n".join(lines[:_EXCERPT_LINES] + cut)
