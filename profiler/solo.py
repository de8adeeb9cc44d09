"""Every function alone in its own wrap: the plan, and its deployment without failing functions."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from chiron.deployment.launcher import Deployment
from chiron.deployment.local_launcher import LocalLauncher, Ports, Running
from chiron.openfaas.client import Gateway
from chiron.predictor.mechanisms import DEFAULT_MECHANISM
from chiron.profiler.invocation import Solo
from chiron.profiler.sandbox import find_sandbox
from chiron.profiler.tracer import launching
from chiron.scheduler.layout import LONGEST_NAME, wrap_name
from chiron.workflow.data import Request, Typed
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.model import ANSWER, Stream, Task, Workflow
from chiron.workflow.plan import ALONE, Plan, Wrap

Launch = Callable[[Workflow, WorkflowFolder, Plan], AbstractContextManager[Deployment | Running]]
#: A limit far above the needs of small functions, since exceeding it kills.
_MEMORY_MIB = 1024
#: A core for the function and, if available, another core for the probe.
_CPUS = min(2, len(os.sched_getaffinity(0)))


@dataclass(frozen=True)
class Alone:
    """Running functions, each alone in the wrap ``wrap_of`` it."""

    gateway: Gateway | Ports
    trace_key: str
    wrap_of: Mapping[str, str]

    def solos(self, requests: Mapping[str, list[bytes]]) -> dict[str, Solo]:
        """Return the functions with inputs in `requests`, ready to invoke."""
        return {
            function: self.solo(function, requests[function])
            for function in self.wrap_of
            if function in requests
        }

    def run(
        self, function: str, text: str, limit_s: float | None = None
    ) -> tuple[dict[str, str], float]:
        ran = self.solo(function, [Request(text)]).invoke(observed=True, limit_s=limit_s)
        emitted = {name: each.text for name, each in ran.emitted.items()}
        return {ANSWER: Typed(ran.output, ran.content_type)} | emitted, ran.latency_ms

    def solo(self, function: str, requests: Sequence[bytes]) -> Solo:
        """Return one function, ready to invoke with `requests`."""
        return Solo(self.gateway, self.trace_key, self.wrap_of[function], function, requests)

    def resident_mib(self) -> dict[str, float]:
        """Return the current memory of the functions whose processes are visible here."""
        found = {}
        for function, wrap in self.wrap_of.items():
            with suppress(ChironError):
                sandbox = find_sandbox(wrap, self.gateway.url, self.trace_key)
                found[function] = sandbox.resident_mib()
        return found


@contextmanager
def alone(
    launch: Launch,
    folder: WorkflowFolder,
    failures: dict[str, ChironError],
    *,
    mechanism: str = "",
) -> Iterator[Alone]:
    """Run the functions of `folder` that have not failed, for the duration of the block.

    Functions that cannot be started are added to `failures`, and the others run without them. A
    function that cannot be imported is raised instead, since its user must fix that first.

    With a `mechanism` they run in processes of that mechanism.

    Raises the errors of `launch` that blame no wrap, and the first failure if no function is left.
    """
    with ExitStack() as stack:
        while True:
            workflow = solo_workflow(folder.workflow, without=failures)
            if not workflow.functions:
                raise next(iter(failures.values()))
            plan = solo_plan(workflow, mechanism)
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
                if error.code in ("missing-package", "import-failed"):
                    message = error.message.replace(error.functions[0], broken[0])
                    raise ChironError(error.code, message, functions=broken[:1]) from None
                for function in broken:
                    message = f"function {function} cannot be started: {error.message}"
                    failures[function] = ChironError(
                        error.code, message, functions=[function], status=error.status
                    )
        wrap_of = dict(zip(workflow.functions, placed.names, strict=True))
        yield Alone(placed.gateway, placed.trace_key, wrap_of)


@contextmanager
def alone_under_strace(
    strace: str, launcher: LocalLauncher, folder: WorkflowFolder, failures: dict[str, ChironError]
) -> Iterator[tuple[Alone, Mapping[str, Path]]]:
    """Run as `alone`, with processes traced from their start; also yield their trace files."""
    with tempfile.TemporaryDirectory(prefix="chiron-strace-") as scratch:

        def output(wrap: str) -> Path:
            return Path(scratch) / wrap

        def launch(
            workflow: Workflow, folder: WorkflowFolder, plan: Plan
        ) -> AbstractContextManager[Running]:
            return launcher.launch_under(
                workflow, folder, plan, lambda wrap: launching(strace, output(wrap))
            )

        with alone(launch, folder, failures) as running:
            yield running, {name: output(wrap) for name, wrap in running.wrap_of.items()}


def solo_workflow(workflow: Workflow, without: Collection[str] = ()) -> Workflow:
    """Return a workflow with every function of `workflow` once, as independent tasks.

    The functions in `without` are left out. Streams come with the request, under the names of the
    first task that uses the function.
    """
    names = tuple(name for name in workflow.functions if name not in without)
    streams = {name: workflow.first_using(name).streams for name in names}
    tasks = tuple(
        Task(name, name, None, tuple(Stream(each, None) for each, _ in streams[name]))
        for name in names
    )
    emitted = (f"{name}#{each}" for name in names for each in workflow.emits.get(name, ()))
    return Workflow(wrap_name(workflow.name, "profile"), tasks, (*names, *emitted))


def solo_plan(workflow: Workflow, mechanism: str = "") -> Plan:
    """Return the one-to-one plan of a `solo_workflow`; wraps are in the order of its functions.

    Each function runs in the main process of its wrap or, with a `mechanism`, in a further process.
    """
    main: tuple[tuple[str, ...], ...] = ((),) if mechanism else ()
    wraps = tuple(
        Wrap(
            name=name,
            cpus=_CPUS,
            memory_mib=_MEMORY_MIB,
            mechanism=mechanism or DEFAULT_MECHANISM,
            processes=(*main, (task.name,)),
        )
        for task, name in zip(workflow.tasks, _wrap_names(workflow), strict=True)
    )
    return Plan(
        format=2,
        workflow=workflow.name,
        planner=ALONE,
        orchestrator="client",
        trigger="stage",
        wraps=wraps,
        cpus=_CPUS * len(wraps),
    )


def _wrap_names(workflow: Workflow) -> Sequence[str]:
    """Return ``WORKFLOW-FUNCTION``, with a number for the function if that is too long."""
    whole = [f"{workflow.name}-{function}" for function in workflow.functions]
    return [
        name if len(name) <= LONGEST_NAME else wrap_name(workflow.name, f"{number}")
        for number, name in enumerate(whole)
    ]
