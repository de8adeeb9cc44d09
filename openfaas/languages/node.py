"""Node.js handlers, as OpenFaaS's templates for Node call them."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from chiron.openfaas.handlers import Extra, Handler, fault, handler_folder, there
from chiron.openfaas.languages.language import Language
from chiron.openfaas.stack import StackFunction

#: The files that satisfy a template's ``require``, in Node's order.
_ENTRIES = ("handler.js", "handler/index.js")
#: Templates with Express 4, and with Express 5; those before answer by a callback alone.
_NEWER, _NEWEST = (12, 14, 16, 17, 18, 20), (22, 24)
#: The reference run's caller of a handler.
_REFERENCE = ("node", str(Path(__file__).with_name("node_reference.js")))


class Node(Language):
    """A handler.js that exports a function."""

    styles: ClassVar = {
        "node": "node-classic",
        "node8-express": "node-callback",
        "node10-express": "node-callback",
        **{f"node{version}": "node" for version in _NEWER},
        **{f"node{version}": "node22" for version in _NEWEST},
    }
    start = "node index.js"
    only_answers = True
    build_args: ClassVar = {"RUNTIME_IMAGE": "node:20-bookworm-slim"}

    def handler(self, name: str, function: StackFunction, folder: Path, extra: Extra) -> Handler:
        place = handler_folder(name, function, folder, "with its handler.js")
        if not any(there((place / entry).is_file) for entry in _ENTRIES):
            message = f"function {name}: handler.js missing at {place}: create it or mend handler"
            raise fault("no-handler", name, "handler", message)
        return Handler(
            name,
            place,
            self.styles[function.lang],
            extra=extra,
            reference=_REFERENCE,
            runtime="node",
            cooperative=True,
        )


NODE = Node()
