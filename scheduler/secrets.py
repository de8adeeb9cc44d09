"""The secrets that the user's stack.yaml gives to functions, and who else in a wrap gets them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from openfaas.stack import read_stack
from workflow.folder import WorkflowFolder
from workflow.model import Workflow
from workflow.plan import Plan

#: Function -> the names of its secrets.
Secrets = Mapping[str, Sequence[str]]


def read_secrets(folder: WorkflowFolder, variables: Mapping[str, str]) -> Secrets:
    """The names of the secrets of the workflow's functions; nothing without a stack.yaml.

    Parameters
    ----------
    variables
        What ``${VAR}`` in stack.yaml stands for, usually ``os.environ``.

    Raises
    ------
    ChironError
        What `openfaas.stack.read_stack` raises.
    """
    if not folder.stack_file.exists():
        return {}
    functions = read_stack(folder.stack_file, variables).functions
    return {
        name: functions[name].secrets
        for name in folder.workflow.functions
        if name in functions and functions[name].secrets
    }


def widened_secrets(plan: Plan, workflow: Workflow, secrets: Secrets) -> Iterator[str]:
    """A line for every wrap in which a function can read secrets that are only others'.

    All functions of a wrap are in one sandbox, with the union of their secrets as files.
    """
    for wrap in plan.wraps:
        inside = list(dict.fromkeys(map(workflow.function_of, wrap.tasks)))
        owners = [name for name in inside if secrets.get(name)]
        given = sorted({secret for name in owners for secret in secrets[name]})
        if any(set(secrets.get(name, ())) < set(given) for name in inside):
            plural = "s" if len(given) > 1 else ""
            yield (
                f"{wrap.name} gives the secret{plural} {', '.join(given)} of {', '.join(owners)} "
                "to all its functions: isolate in constraints.json keeps one to a wrap of its own"
            )
