"""A new version, deployed beside the one that serves, and checked before anyone else calls it."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from adaptation.version import CANDIDATE, SOURCE, VERSION, named, source_of, version_of
from generator.annotations import ROLE
from generator.deploy import deploy_stack, remove_all
from generator.generate import Sources, generate
from generator.launcher import Launcher, invoker_for
from generator.measure import Measurement, check_of, measure
from openfaas.objects import FunctionSpec
from openfaas.stack import StackFile, deployment, read_stack, write_stack
from services.deployment import DeploymentRequest
from workflow.answer import ExpectedAnswer
from workflow.errors import ChironError
from workflow.plan import Plan

#: Requests that a new version has to answer rightly, after a warm-up.
_CHECKS = 10


@dataclass(frozen=True)
class Candidate:
    """A version that works.

    Attributes
    ----------
    version
        Its name.
    entry
        How its entry wrap was deployed.
    created
        All functions that were deployed for it.
    measured
        What its answers took.
    """

    version: str
    entry: FunctionSpec
    created: list[str]
    measured: Measurement


def deploy_beside(
    launcher: Launcher,
    plan: Plan,
    sources: Sources,
    request: DeploymentRequest,
    out: Path,
    expected: ExpectedAnswer | None,
) -> Candidate:
    """`plan` deployed under names of its own; nothing of it stays where it does not work.

    Supporting functions of the workflow's stack.yaml belong to all versions: those that are
    missing are deployed, those that are there stay as they are.

    Parameters
    ----------
    request
        What `plan` and `sources` are of.
    out
        Where the deployable folder is generated.
    expected
        What it has to answer to the example request; None where that is not known.

    Raises
    ------
    ChironError
        Of generating, building and deploying; ``wrong-output`` and the like where an answer is
        another.
    """
    gateway = launcher.gateway
    source = source_of(sources, request)
    version = version_of(plan, source)
    plan = named(plan, version)
    stack_file = generate(plan, sources, out, request.timeout_s)
    present = {function.name for function in gateway.functions()}
    stack = _of_version(
        read_stack(stack_file, {}), plan, present, {VERSION: version, SOURCE: source}
    )
    write_stack(stack_file, stack)
    launcher.build(stack_file)
    created = deploy_stack(gateway, stack_file)
    try:
        check = check_of(request.folder.workflow, expected)
        with invoker_for(plan, request.folder.workflow, gateway.url, request.timeout_s) as invoker:
            measured = measure(invoker, request.folder.payload(), _CHECKS, check)
    except BaseException:
        with suppress(ChironError):  # the first error is the one that tells what is wrong
            remove_all(gateway, created)
        raise
    entry = deployment(stack, plan.wraps[0].name, stack_file.parent)
    return Candidate(version, entry, created, measured)


def _of_version(
    stack: StackFile, plan: Plan, present: Collection[str], marks: dict[str, str]
) -> StackFile:
    """The wraps of `plan` in `stack`, marked, and the supporting functions that are missing."""
    wraps = {wrap.name for wrap in plan.wraps}
    functions = {n: f for n, f in stack.functions.items() if n in wraps or n not in present}
    for index, wrap in enumerate(plan.wraps):
        function = functions[wrap.name]
        role = {} if index else {ROLE: CANDIDATE}
        annotations = {**function.annotations, **marks, **role}
        functions[wrap.name] = function.model_copy(update={"annotations": annotations})
    return stack.model_copy(update={"functions": functions})
