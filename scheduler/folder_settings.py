"""What the files of a workflow folder say to the scheduler beside its workflow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.environments import Environments, read_environments
from scheduler.secrets import Secrets, read_secrets
from scheduler.wishes import NO_WISHES, Wishes, read_wishes
from workflow.folder import WorkflowFolder


@dataclass(frozen=True)
class FolderSettings:
    """The user's wishes, and the variables and secrets of each function."""

    wishes: Wishes = NO_WISHES
    environments: Environments = field(default_factory=dict)
    secrets: Secrets = field(default_factory=dict)


def read_settings(folder: WorkflowFolder, variables: Mapping[str, str]) -> FolderSettings:
    """The settings in wishes.json and stack.yaml, each of which need not be there.

    Parameters
    ----------
    variables
        What ``${VAR}`` in stack.yaml stands for, usually ``os.environ``.
    """
    return FolderSettings(
        wishes=read_wishes(folder.path),
        environments=read_environments(folder, variables),
        secrets=read_secrets(folder, variables),
    )
