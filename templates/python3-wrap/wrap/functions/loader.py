"""Imports the functions of a wrap, each into a module namespace of its own.

Worker processes are forked from a process that has imported their functions, and share its memory.
If an import leaves resources open that processes cannot share, the function is *late*: each process
that runs the function imports it. The parent imports only a late function's libraries, which take
most of the time.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from wrap.functions import leftovers
from wrap.functions.function_runner import FunctionRunner
from wrap.functions.public import is_public

#: The key of late functions' libraries in `load_shared`; no function has this name.
LIBRARIES = ""


class Late(NamedTuple):
    """The unshareable resources that an import left open, and the libraries that it imported."""

    opens: list[str]
    libraries: list[str]


def load_shared(functions: Iterable[FunctionRunner], libraries: Iterable[str]) -> dict[str, Late]:
    """Import `libraries` and `functions` in the process that forks workers.

    Returns the functions that must be imported late, by name. Raises ImportError if a function
    cannot be imported.
    """
    left, imported = dict[str, leftovers.Open](), dict[str, list[str]]()
    before = leftovers.look()
    for name, load in _imports(functions, libraries):
        known = set(sys.modules)
        load()
        after = leftovers.look()
        left[name], before = after.since(before), after
        imported[name] = [each for each in sys.modules if each not in known and is_public(each)]
    outlasting = leftovers.outlasting([number for each in left.values() for number in each.threads])
    found = {name: each.unshareable(outlasting) for name, each in left.items()}
    return {
        name: Late(list(dict.fromkeys(leftovers.named(each))), imported[name])
        for name, each in found.items()
        if any(each)
    }


def _imports(
    functions: Iterable[FunctionRunner], libraries: Iterable[str]
) -> Iterator[tuple[str, Callable[[], None]]]:
    yield LIBRARIES, partial(_import, libraries)
    for function in functions:
        yield function.name, function.prepare


def _import(libraries: Iterable[str]) -> None:
    for name in libraries:
        with contextlib.suppress(Exception):  # the function's own import raises it again
            importlib.import_module(name)
