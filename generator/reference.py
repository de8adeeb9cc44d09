"""The reference executor's answer for a workflow folder."""

from __future__ import annotations

from generator.generate import Sources
from openfaas.stack import environment
from workflow.reference import Handler, ReferenceRun, run_reference


def reference(sources: Sources, request: bytes, gateway_url: str) -> ReferenceRun:
    """What the workflow of `sources` answers to `request`, and every task's input and output.

    Supporting functions, if there are any, have to be deployed at `gateway_url`.

    Raises
    ------
    ChironError
        ``bad-request`` where `request` is no text, or what `run_reference` raises.
    """
    handlers = {
        name: Handler(
            handler.folder,
            handler.style,
            environment(sources.stack.functions[name], sources.folder.path),
        )
        for name, handler in sources.handlers.items()
    }
    return run_reference(
        sources.folder.workflow, handlers, request, environment={"gateway_url": gateway_url}
    )
