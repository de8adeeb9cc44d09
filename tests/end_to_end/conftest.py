"""An embedded gateway, and what runs below it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psutil
import pytest

from chiron.deployment.launcher import Deployment, Launcher
from chiron.gateway.embedded import EmbeddedGateway
from chiron.openfaas.client import Gateway
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.plan import Plan


@dataclass
class Place:
    """A running gateway and a launcher on it."""

    gateway: Gateway
    launcher: Launcher
    pid: int

    def names(self) -> set[str]:
        return {function.name for function in self.gateway.functions()}

    def processes(self) -> set[psutil.Process]:
        """The servers of all functions, and what they started."""
        below = psutil.Process(self.pid).children(recursive=True)
        return {process for process in below if _is_function(process)}

    @contextmanager
    def deployed(self, folder: WorkflowFolder, plans: list[Plan]) -> Iterator[list[Deployment]]:
        """All of `plans` at once."""
        with ExitStack() as stack:
            yield [
                stack.enter_context(self.launcher.launch(folder.workflow, folder, plan))
                for plan in plans
            ]


def _is_function(process: psutil.Process) -> bool:
    try:
        return "index.py" in process.cmdline()
    except psutil.NoSuchProcess:
        return False


@pytest.fixture(scope="session")
def place(embedded: EmbeddedGateway, launcher: Launcher) -> Place:
    """The gateway that the tests share."""
    return Place(launcher.gateway, launcher, embedded.pid)
