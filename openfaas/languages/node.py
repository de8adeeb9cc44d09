"""Node.js handlers, as OpenFaaS's templates for Node call them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from chiron.openfaas.handlers import Extra, Handler, fault, handler_folder, there
from chiron.openfaas.stack import StackFunction
from chiron.workflow.reference import HandlerStyle

#: What a template requires, as Node finds it.
_ENTRIES = ("handler.js", "handler/index.js")
#: Templates before these answer by a callback alone; node22 has Express 5.
_NEWER = (12, 14, 16, 17, 18, 20)
_USUAL = ("", "node index.js")


class Node:
    """A handler.js that exports a function."""

    styles: Mapping[str, HandlerStyle] = {
        "node": "node-classic",
        "node8-express": "node-callback",
        "node10-express": "node-callback",
        **{f"node{version}": "node" for version in _NEWER},
        "node22": "node22",
    }
    start = "node index.js"
    only_answers = True
    build_args: Mapping[str, str] = {"RUNTIME_IMAGE": "node:20-bookworm-slim"}

    def handler(self, name: str, function: StackFunction, folder: Path, extra: Extra) -> Handler:
        place = handler_folder(name, function, folder, "with its handler.js")
        if not any(there((place / entry).is_file) for entry in _ENTRIES):
            message = f"function {name}: handler.js missing at {place}: create it or mend handler"
            raise fault("no-handler", name, "handler", message)
        style = self.styles[function.lang]
        return Handler(name, place, style, extra=extra, runtime="node", cooperative=True)

    def uses_fprocess(self, function: StackFunction) -> bool:
        """Whether its template would have started the same: a wrap calls the handler itself."""
        return function.fprocess.strip() in _USUAL


NODE = Node()
