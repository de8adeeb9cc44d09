"""The environment variables that the user's stack.yaml gives to functions."""

from __future__ import annotations

from collections.abc import Mapping

from openfaas.handler_folder import STYLES
from openfaas.stack import environment, read_stack
from workflow.folder import WorkflowFolder

#: Function -> variable -> value.
Environments = Mapping[str, Mapping[str, str]]

#: Variables that every wrap has its own values of, computed from the plan.
OF_WRAPS = frozenset(
    [
        "exec_timeout",
        "healthcheck_interval",
        "max_inflight",
        "pool_concurrency",
        "read_timeout",
        "write_timeout",
        "WAITRESS_THREADS",
        "WRAP_CPUS",
        "WRAP_MEMORY_MIB",
        "WRAP_REQUEST_BYTES",
    ]
)
#: What python3-flask looks at to choose between text and bytes; not to set it asks for text.
_RAW_BODY = "RAW_BODY"


def read_environments(folder: WorkflowFolder, variables: Mapping[str, str]) -> Environments:
    """What the workflow's functions find in their environment; nothing without a stack.yaml.

    Parameters
    ----------
    variables
        What ``${VAR}`` in stack.yaml stands for, usually ``os.environ``.

    Raises
    ------
    ChironError
        What `openfaas.stack.read_stack` and `environment` raise.
    """
    if not folder.stack_file.exists():
        return {}
    functions = read_stack(folder.stack_file, variables).functions
    found: dict[str, dict[str, str]] = {}
    for name in folder.workflow.functions:
        if name in functions:
            given = environment(functions[name], folder.path)
            if STYLES.get(functions[name].lang) == "flask":
                given = {_RAW_BODY: "false"} | given
            found[name] = without_wraps_own(given)
    return found


def without_wraps_own(variables: Mapping[str, str]) -> dict[str, str]:
    """`variables` but those that every wrap has its own values of."""
    return {key: variables[key] for key in variables.keys() - OF_WRAPS}
