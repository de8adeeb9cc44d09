"""Imports the functions of a wrap, each into a module namespace of its own.

Further processes are forked from a process that has imported their functions, and share its memory.
A function is imported late where its import leaves open what processes cannot share: by each
process that runs it, and by no process from which others are forked. That one imports the libraries
of late functions, which takes most of the time.
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

#: What `load_shared` calls the libraries of late functions, as no function is called.
LIBRARIES = ""


class Late(NamedTuple):
    """What an import has left open that processes cannot share, and the libraries it imported."""

    opens: list[str]
    libraries: list[str]


def load_shared(functions: Iterable[FunctionRunner], libraries: Iterable[str]) -> dict[str, Late]:
    """Import `libraries` and `functions` in a process from which others are forked.

    Returns those that leave open what processes cannot share, by their names: such functions have
    to be imported late. Raises ImportError as `FunctionRunner.prepare` does.
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
        with contextlib.suppress(Exception):  # the function that needs it raises what this raises
            importlib.import_module(name)
