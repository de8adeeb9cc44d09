"""What the profiler needs of whoever deploys plans, which is handed in and not imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

from requests import Response

from workflow.folder import WorkflowFolder
from workflow.model import Workflow
from workflow.plan import Plan


class Answer(Protocol):
    """What a deployed workflow answered."""

    @property
    def output(self) -> str:
        """The workflow's output."""

    @property
    def latency_ms(self) -> float:
        """How long the client waited for it."""

    @property
    def timeline(self) -> list[dict[str, Any]]:
        """What ran when in the wraps, where it was asked for."""


class Caller(Protocol):
    """Calls functions by their names: a gateway, or what stands in for one."""

    @property
    def url(self) -> str:
        """What the functions have as ``gateway_url``."""

    def invoke(self, name: str, body: bytes, headers: Mapping[str, str] | None = None) -> Response:
        """The answer of the function `name` to `body`, whatever its status."""


class Placed(Protocol):
    """A plan whose wraps run somewhere."""

    @property
    def gateway(self) -> Caller:
        """Where they run."""

    @property
    def names(self) -> tuple[str, ...]:
        """The OpenFaaS functions of the wraps, in the order of the plan."""

    @property
    def trace_key(self) -> str:
        """With which they trace requests."""


class Deployment(Placed, Protocol):
    """A plan that is deployed, so that its workflow can be run."""

    def invoke(self, request: bytes, *, trace: bool = False) -> Answer:
        """Run the workflow on `request`."""


class Launcher(Protocol):
    """Deploys plans."""

    @property
    def one_node(self) -> bool:
        """Whether all sandboxes share the cores of one machine."""

    def launch(
        self, workflow: Workflow, folder: WorkflowFolder, plan: Plan
    ) -> AbstractContextManager[Deployment]:
        """`plan` with the code of the functions in `folder`, deployed for the length of a block.

        It answers when the block is entered, with the supporting functions of the folder's
        stack.yaml beside it; what was deployed for it is gone after the block.
        """


class SoloLauncher(Protocol):
    """Runs plans; `Launcher` is one, but profiling needs no more than this."""

    def launch(
        self, workflow: Workflow, folder: WorkflowFolder, plan: Plan
    ) -> AbstractContextManager[Placed]:
        """`plan` with the code of the functions in `folder`, running for the length of a block."""


@runtime_checkable
class Starter(SoloLauncher, Protocol):
    """A launcher that starts the processes of the wraps itself, on this machine."""

    def launch_under(
        self,
        workflow: Workflow,
        folder: WorkflowFolder,
        plan: Plan,
        prefix: Callable[[str], Sequence[str]],
    ) -> AbstractContextManager[Placed]:
        """As `launch`, each wrap started by the command `prefix` of its name, before its own."""
