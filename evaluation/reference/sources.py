"""Runs the reference executor on the code of a workflow folder."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from chiron.evaluation.reference.executor import Handler, ReferenceRun, run_reference
from chiron.generator.generate import REMOTE, Sources
from chiron.openfaas.handlers import lay_out
from chiron.openfaas.store_function import PASSWORD, reads_store
from chiron.templates import TEMPLATES
from chiron.workflow.asl_resources import STORE_FUNCTION

_HERE = Path(__file__).parent
#: The programs that call handlers of other runtimes than Python.
_PROGRAMS = {
    "node": ("node", str(_HERE / "node.js")),
    "java": (
        "java",
        "-XX:TieredStopAtLevel=1",  # it compiles more than it runs
        "-XX:+UseSerialGC",
        str(_HERE / "JavaReference.java"),
        str(TEMPLATES / "python3-wrap" / "wrap" / "functions" / "java"),  # the templates' classes
    ),
}


def reference_run(sources: Sources, request: bytes, gateway_url: str) -> ReferenceRun:
    """Return the workflow's answer to `request`, and every task's input and output.

    The functions that tasks call must be deployed at `gateway_url`.

    Raises the errors of `run_reference`.
    """
    variables = sources.variables(sources.handlers)
    common, folder = {"gateway_url": gateway_url}, sources.folder
    if reads_store(sources.stack):
        variables[STORE_FUNCTION] |= {PASSWORD: os.environ.get(PASSWORD, "")}
    with tempfile.TemporaryDirectory(prefix="chiron-") as scratch:
        handlers = {}
        for name, handler in sources.handlers.items():
            place = handler.folder
            if handler.extra:
                place = Path(scratch) / name
                lay_out(handler.folder, handler.extra, place)
            handlers[name] = Handler(
                place,
                handler.style,
                variables[name],
                handler.command,
                reference=_PROGRAMS.get(handler.runtime, ()),
            )
        for name in sources.called:
            url = f"{gateway_url}/function/{name}"
            handlers[name] = Handler(folder.path, REMOTE, {}, url=url)
        return run_reference(
            folder.workflow, handlers, request, environment=common, triggers=folder.path
        )
