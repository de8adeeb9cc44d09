"""Dash with its page and callbacks, which call what the API calls."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from typing import Any

from dash import ALL, Dash, Input, Output, State, ctx, no_update
from flask import Flask

from services.dashboard.page import INDEX, faults, job_rows, page, plan_summary, table
from services.dashboard.reading import look_at_named, look_at_upload, plan_of
from services.dashboard.uploads import packed
from services.endpoints import ScheduleRequest
from services.folders import example_folder, folder_name
from services.host import Host, host, remove_workspace
from services.problems import answer_errors
from services.strict_request import FORM_LIMIT
from workflow.documents import validate
from workflow.errors import ChironError

_TASKS = ["Task", "Function", "Stage", "Input from"]
#: Jobs that are shown.
_JOBS = 10
#: Where a missing part comes from: the newest job of this kind.
_MEASURING = {"profile": "profile", "platform": "calibrate"}
_NO_PLAN = "Show a workflow with its profile and platform first."


def create_dash(owner: Host) -> Dash:
    """The dashboard of the services that have `owner`."""
    server = Flask(__name__, static_folder=None)
    server.config.update(MAX_CONTENT_LENGTH=FORM_LIMIT)
    server.extensions["chiron"] = owner
    server.teardown_request(remove_workspace)
    dash = Dash(
        __name__,
        server=server,  # type: ignore[arg-type]  # its annotation forgets Flask
        title="Chiron",
        update_title="",
        index_string=INDEX,
        add_log_handler=False,
        enable_mcp=False,
    )
    answer_errors(server)
    dash.layout = lambda: page(example_folder(owner.config.root))
    _show_workflows(dash)
    _plan(dash)
    _list_jobs(dash)
    return dash


def _show_workflows(dash: Dash) -> None:
    @dash.callback(
        Output("known", "data"),
        Output("workflow-faults", "children"),
        Output("seen", "children"),
        Output("tasks", "children"),
        Output("graph", "elements"),
        Output("slo", "max"),
        Output("slo", "value"),
        Input("files", "contents"),
        Input("show", "n_clicks"),
        Input("directory", "n_submit"),
        State("files", "filename"),
        State("directory", "value"),
        prevent_initial_call=True,
    )
    def show(
        files: Sequence[str] | None,
        _clicks: int | None,
        _submits: int | None,
        file_names: Sequence[str] | None,
        directory: str | None,
    ) -> tuple[Any, ...]:
        try:
            if ctx.triggered_id == "files":
                seen = _uploaded(files or (), file_names or ())
            else:
                owner, variables = host(), dict(os.environ)
                root = owner.config.root
                seen = owner.compute(look_at_named, directory or "", root, variables)
        except ChironError as error:
            seen = {"faults": [error.as_dict()]}
        if "faults" in seen:
            return None, faults(seen["faults"]), "", "", [], no_update, no_update
        known, told = _with_measured(seen["known"], seen["name"])
        told = f"{seen['name']}: {len(seen['tasks'])} tasks. {told}"
        most = _longest_slo_ms(known)
        tasks = table("Tasks", _TASKS, seen["tasks"])
        return known, [], told, tasks, seen["graph"], most, most // 2


def _uploaded(contents: Sequence[str], names: Sequence[str]) -> Any:
    owner = host()
    workspace = owner.workspace()
    archive = workspace / "upload.packed"
    archive.write_bytes(packed(contents, names))
    target = workspace / "upload" / folder_name(names[0] if len(names) == 1 else None)
    return owner.compute(look_at_upload, archive, target)


def _with_measured(known: dict[str, Any], workflow: str) -> tuple[dict[str, Any], str]:
    """`known` with what jobs have measured where it has none, and what to say of that."""
    store, told = host().store, []
    for part, kind in _MEASURING.items():
        if part in known:
            continue
        done = (job for job in store.newest(kind) if job.status == "done")
        results = ((job.id, store.get(job.id).result) for job in done)
        fitting = (
            (name, result)
            for name, result in results
            if part == "platform" or result["workflow"] == workflow
        )
        name, result = next(fitting, (None, None))
        if result is None:
            told.append(f"It has no {part}.json: add the file, or run the job {kind}.")
        else:
            known = known | {part: result}
            told.append(f"Its {part} is that of job {name}.")
    return known, " ".join(told)


def _longest_slo_ms(known: dict[str, Any]) -> int:
    """Twice the time of all functions, one after another; a second without a profile."""
    functions = known.get("profile", {}).get("functions", {}).values()
    total_ms = sum(function["latency_ms"] for function in functions)
    return max(20, math.ceil(2 * total_ms)) if total_ms else 1000


def _plan(dash: Dash) -> None:
    @dash.callback(
        Output("planned", "data"),
        Output("plan-faults", "children"),
        Output("summary", "children"),
        Output("graph", "elements", allow_duplicate=True),
        Output("export", "disabled"),
        Output("slo-shown", "children"),
        Input("known", "data"),
        Input("slo", "value"),
        Input("planner", "value"),
        prevent_initial_call=True,
    )
    def plan(known: dict[str, Any] | None, slo: float | None, planner: str) -> tuple[Any, ...]:
        shown = f"{slo} ms"
        if not known or not {"profile", "platform"} <= known.keys():
            return None, [], _NO_PLAN, no_update, True, shown
        try:
            asked = known | {"slo": f"{slo}ms", "planner": planner}
            found = host().compute(plan_of, validate(ScheduleRequest, asked, "the plan"))
        except ChironError as error:
            return None, faults([error.as_dict()]), "", no_update, True, shown
        return found["plan"], [], plan_summary(found["plan"]), found["graph"], False, shown

    @dash.callback(
        Output("exported", "data"),
        Input("export", "n_clicks"),
        State("planned", "data"),
        prevent_initial_call=True,
    )
    def export(_: int | None, planned: dict[str, Any] | None) -> Any:
        if not planned:
            return no_update
        text = json.dumps(planned, indent=1, ensure_ascii=False) + "\n"
        return {"content": text, "filename": "plan.json", "type": "application/json"}


def _list_jobs(dash: Dash) -> None:
    @dash.callback(
        Output("job-list", "children"),
        Output("shown-jobs", "data"),
        Output("job-faults", "children"),
        Input("tick", "n_intervals"),
        Input({"type": "cancel", "job": ALL}, "n_clicks"),
        State("shown-jobs", "data"),
    )
    def jobs(_: int | None, clicks: list[int | None], before: Any) -> tuple[Any, ...]:
        told: Any = no_update
        if isinstance(ctx.triggered_id, dict) and any(clicks):
            try:
                host().cancel(ctx.triggered_id["job"])
                told = []
            except ChironError as error:
                told = faults([error.as_dict()])
        store = host().store
        listed = [store.get(job.id) for job in store.newest()[:_JOBS]]
        found = [job.model_dump(mode="json", exclude={"result"}) for job in listed]
        if found == before:  # what has the focus keeps it
            return no_update, no_update, told
        return job_rows(found), found, told
