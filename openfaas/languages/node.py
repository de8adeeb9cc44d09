"""Node.js handlers, as OpenFaaS's templates for Node call them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import ClassVar

from chiron.openfaas.handlers import Extra, Handler, fault, handler_folder, there
from chiron.openfaas.languages.language import Language
from chiron.openfaas.stack import StackFunction

#: The files that satisfy a template's ``require``, in Node's order.
_ENTRIES = ("handler.js", "handler/index.js")
#: Templates with Express 4, and with Express 5; those before answer by a callback alone.
_NEWER, _NEWEST = (12, 14, 16, 17, 18, 20), (22, 24)
#: The major version of Node.js in wraps.
_IN_WRAPS = 20
_VERSION = re.compile(r"node(\d+)")
#: Two versions with a hyphen; a comparator: operator, major version or a wildcard, and the rest.
_HYPHEN = re.compile(r"v?(\d+)\S*\s+-\s+v?(\d+)\S*")
_COMPARATOR = re.compile(r"(<=?|>=?|)[~^=]?\s*v?(\d+|[xX*])((?:\.[\w*]+)*)\S*")


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
    build_args: ClassVar = {"RUNTIME_IMAGE": f"node:{_IN_WRAPS}-bookworm-slim"}

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
            runtime="node",
            cooperative=True,
        )

    def outside(self, function: StackFunction, folder: Path) -> str:
        wanted = _engines(folder / function.handler / "package.json")
        own = _version(function.lang)
        if own and _admits(wanted, own) and not _admits(wanted, _IN_WRAPS):
            return f"its package.json asks for Node.js {wanted}, and wraps have {_IN_WRAPS}"
        return ""

    def remark(self, function: StackFunction) -> str:
        version = _version(function.lang)
        if version <= _IN_WRAPS:
            return ""
        return (
            f"lang {function.lang} runs on Node.js {_IN_WRAPS} in a wrap: to keep it a function of "
            f'its own, write "engines": {{"node": ">={version}"}} in its package.json'
        )


NODE = Node()


def _version(lang: str) -> int:
    """Return the major version in the name of a template; 0 without one."""
    found = _VERSION.match(lang)
    return int(found[1]) if found else 0


def _engines(file: Path) -> str:
    """Return the range of Node.js versions in a package.json; empty without one."""
    try:
        wanted = json.loads(file.read_bytes())["engines"]["node"]
    except (OSError, ValueError, LookupError, TypeError):
        return ""  # the build tells what is wrong with the file
    return wanted if isinstance(wanted, str) else ""


def _admits(wanted: str, major: int) -> bool:
    """Return whether the range `wanted` may have a version with this `major`."""
    return any(_fits(each.strip(), major) for each in wanted.split("||"))


def _fits(comparators: str, major: int) -> bool:
    if found := _HYPHEN.fullmatch(comparators):
        return int(found[1]) <= major <= int(found[2])
    for operator, given, rest in _COMPARATOR.findall(comparators):
        if not given.isdigit():
            continue
        least = int(given)
        fits = {
            "": major == least,
            ">=": major >= least,
            "<=": major <= least,
            ">": major > least or (major == least and bool(rest)),
            "<": major < least or (major == least and any(each in "123456789" for each in rest)),
        }
        if not fits[operator]:
            return False
    return True
