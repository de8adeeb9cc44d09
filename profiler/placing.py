"""Runs every function of a workflow alone in a wrap, without those that cannot be started."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from profiler.invocation import Solo
from profiler.launcher import Caller, Placed, Starter
from profiler.solo import solo_plan, solo_workflow
from profiler.tracer import launching
from workflow.errors import ChironError
from workflow.folder import WorkflowFolder
from workflow.model import Workflow
from workflow.plan import Plan

Launch = Callable[[Workflow, WorkflowFolder, Plan], AbstractContextManager[Placed]]


@dataclass(frozen=True)
class Alone:
    """Functions that run, each alone in the wrap ``wrap_of`` it."""

    gateway: Caller
    trace_key: str
    wrap_of: Mapping[str, str]

    def solos(self, requests: Mapping[str, list[bytes]]) -> dict[str, Solo]:
        """Those of them that have inputs in `requests`, to be invoked."""
        return {
            function: self.solo(function, requests[function])
            for function in self.wrap_of
            if function in requests
        }

    def run(self, function: str, text: str) -> str:
        """What one of them answers to `text`."""
        return self.solo(function, [text.encode()]).invoke().output

    def solo(self, function: str, requests: Sequence[bytes]) -> Solo:
        """One of them, to be invoked with `requests`."""
        return Solo(self.gateway, self.trace_key, self.wrap_of[function], function, requests)


@contextmanager
def alone(
    launch: Launch,
    folder: WorkflowFolder,
    failures: dict[str, ChironError],
    *,
    forked: bool = False,
) -> Iterator[Alone]:
    """The functions of `folder` that have not failed, running for the length of the block.

    Those that cannot be started are added to `failures`, and the others run without them.

    Parameters
    ----------
    forked
        Whether they run in processes that are forked for each request.

    Raises
    ------
    ChironError
        What `launch` raises where it blames no wrap; the first failure where no function is left.
    """
    with ExitStack() as stack:
        while True:
            workflow = solo_workflow(folder.workflow, without=failures)
            if not workflow.functions:
                raise next(iter(failures.values()))
            plan = solo_plan(workflow, forked=forked)
            wraps = {
                wrap.name: function
                for wrap, function in zip(plan.wraps, workflow.functions, strict=True)
            }
            try:
                placed = stack.enter_context(launch(workflow, folder, plan))
                break
            except ChironError as error:
                broken = [wraps[name] for name in error.functions if name in wraps]
                if not broken:
                    raise
                for function in broken:
                    failures[function] = _cannot_start(function, error)
        wrap_of = dict(zip(workflow.functions, placed.names, strict=True))
        yield Alone(placed.gateway, placed.trace_key, wrap_of)


@contextmanager
def alone_under_strace(
    strace: str, launcher: Starter, folder: WorkflowFolder, failures: dict[str, ChironError]
) -> Iterator[tuple[Alone, Mapping[str, Path]]]:
    """As `alone`, with the processes traced from their start; and where the trace of each is."""
    with tempfile.TemporaryDirectory(prefix="chiron-strace-") as scratch:

        def output(wrap: str) -> Path:
            return Path(scratch) / wrap

        def launch(
            workflow: Workflow, folder: WorkflowFolder, plan: Plan
        ) -> AbstractContextManager[Placed]:
            return launcher.launch_under(
                workflow, folder, plan, lambda wrap: launching(strace, output(wrap))
            )

        with alone(launch, folder, failures) as running:
            yield running, {name: output(wrap) for name, wrap in running.wrap_of.items()}


def _cannot_start(function: str, error: ChironError) -> ChironError:
    message = f"function {function} cannot be started: {error.message}"
    return ChironError(error.code, message, functions=[function], status=error.status)
