"""What the files of a workflow folder say to the scheduler beside its workflow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.environments import Environments, read_environments
from scheduler.secrets import Secrets, read_secrets
from workflow.constraints import NO_CONSTRAINTS, Constraints
from workflow.folder import WorkflowFolder


@dataclass(frozen=True)
class FolderSettings:
    """The user's constraints, and the variables and secrets of each function."""

    constraints: Constraints = NO_CONSTRAINTS
    environments: Environments = field(default_factory=dict)
    secrets: Secrets = field(default_factory=dict)


def read_settings(folder: WorkflowFolder, variables: Mapping[str, str]) -> FolderSettings:
    """The settings in constraints.json and stack.yaml, each of which need not be there.

    Parameters
    ----------
    variables
        What ``${VAR}`` in stack.yaml stands for, usually ``os.environ``.
    """
    return FolderSettings(
        constraints=folder.constraints(),
        environments=read_environments(folder, variables),
        secrets=read_secrets(folder, variables),
    )
