"""`chiron generate`: turns a plan into a folder that faas-cli can deploy."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from chiron.cli import options
from chiron.cli.artefacts import read_plan, read_profile
from chiron.cli.output import next_step, progress, warn
from chiron.generator.generate import Sources, generate
from chiron.generator.stores import StorePlace
from chiron.profiler.shared_resources import perhaps_unshareable, unshareable
from chiron.scheduler.conflict_rules import find_conflicts, unshareable_conflicts
from chiron.scheduler.conflicts import Conflicts
from chiron.scheduler.folder_settings import read_settings
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.forms import workflow_folders
from chiron.workflow.plan import Plan

#: Where a plan's workflow folder is looked for, below the plan's own folder and the current one.
_NEARBY = ("", "*/", "*/*/")
_PROFILE = "profile.json"


@click.command("generate")
@click.argument("plan_file", metavar="PLAN", type=click.Path(path_type=Path))
@click.option(
    "--workflow",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the workflow; where not given, the one nearby that has the plan's tasks.",
)
@options.timeout
@options.gateway_url_inside
@options.store
@options.output("build")
def command(
    plan_file: Path,
    folder: Path | None,
    timeout: float | None,
    gateway_url_inside: str,
    store: str,
    output: Path,
) -> None:
    """Turn PLAN into ordinary OpenFaaS functions: stack.yaml and a folder for every wrap.

    \b
    Example:
      chiron generate plan.json
    """
    plan = read_plan(plan_file)
    opened = WorkflowFolder.open(folder) if folder else _find(plan, plan_file)
    progress(f"workflow {opened.path}")
    place = StorePlace.read(store, os.environ)
    sources = Sources.read(opened, gateway_url=gateway_url_inside, store=place.url)
    stack_file = generate(plan, sources, output, options.seconds(timeout))
    warn(sources.warnings_for(_with_rules(plan, sources, plan_file)))
    count = len(plan.wraps)
    progress(f"wrote {output}: {count} wrap{'s' * (count > 1)}")
    if sources.prefix:  # faas-cli looks for templates in the folder that it runs in
        verbs = (f"faas-cli {verb} -f {stack_file.name}" for verb in ("build", "push", "deploy"))
        next_step(" && ".join((f"cd {shlex.quote(str(output))}", *verbs)))
    else:
        file = shlex.quote(str(stack_file))
        next_step(f"chiron build -f {file} && faas-cli deploy -f {file}")


def _with_rules(plan: Plan, sources: Sources, plan_file: Path) -> Plan:
    """Add rules to a plan written by hand: from a profile nearby, else from the functions' code."""
    folder = sources.folder
    for file in (plan_file.with_name(_PROFILE), folder.path / _PROFILE):
        if file.is_file():
            profile, settings = read_profile(file), read_settings(folder, os.environ)
            names = folder.workflow.functions
            if profile.workflow == plan.workflow and profile.functions.keys() >= set(names):
                found = find_conflicts(names, profile, settings.constraints, settings.environments)
                return plan.model_copy(update={"apart": found.rules})
    if plan.apart:
        return plan
    changes = {
        name: (*unshareable(*handler.places), *perhaps_unshareable(*handler.places))
        for name, handler in sources.handlers.items()
        if handler.in_python
    }
    found = Conflicts(tuple(changes), unshareable_conflicts(changes))
    return plan.model_copy(update={"apart": found.rules})


def _find(plan: Plan, plan_file: Path) -> WorkflowFolder:
    """Return the only workflow folder nearby with the tasks of the plan."""
    tasks = {task for wrap in plan.wraps for task in wrap.tasks}
    found: dict[Path, WorkflowFolder] = {}
    for base in (plan_file.parent, Path()):
        for nearby in _NEARBY:
            for folder in workflow_folders(base, nearby):
                opened = _opened(folder)
                if opened is not None and set(opened.workflow.by_name) == tasks:
                    found.setdefault(folder.resolve(), opened)
    if len(found) == 1:
        return next(iter(found.values()))
    reason = f"{len(found)} fit: {', '.join(map(str, found))}" if found else "none nearby fits"
    raise ChironError(
        "no-workflow",
        f"which workflow folder {plan_file} is for ({reason}): name it with --workflow",
    )


def _opened(folder: Path) -> WorkflowFolder | None:
    try:
        return WorkflowFolder.open(folder)
    except ChironError:
        return None  # somebody else's file of that name
