"""The module ``builtins`` with names of its own for each function.

The modules of a function run with a copy of the builtins (`wrap.functions.namespace`). Assignments
to ``builtins`` by the function, or by a library that it calls, go to the copy. For example,
``gettext`` installs ``_`` there for the language of a request.
"""

from __future__ import annotations

import builtins
from types import ModuleType
from typing import Any

from wrap.functions import public

#: Builtins that each function has alone; assignments to them reach no other function.
OWN = ("__import__", "open")
#: The builtins of modules outside functions.
SHARED: dict[str, Any] = vars(builtins)
#: Package -> the function's builtins.
_copies: dict[str, dict[str, Any]] = {}


def add(package: str, own: dict[str, Any]) -> dict[str, Any]:
    """Create the builtins of the function `package`: a copy with the names in `own` replaced."""
    found = _copies[package] = SHARED | own
    ModuleType.__setattr__(builtins, "__class__", Builtins)
    return found


def update(copy: dict[str, Any]) -> None:
    """Copy names that libraries have set in the shared builtins into a function's `copy`."""
    copy.update({name: each for name, each in SHARED.items() if name not in OWN})


def _of_caller() -> dict[str, Any] | None:
    return _copies.get(public.caller() or "")


def _own(name: str) -> property:
    return property(lambda _: (_of_caller() or SHARED)[name])


class Builtins(ModuleType):
    """The module ``builtins``: each calling function sees its own copy."""

    __import__, open = map(_own, OWN)
    #: Where ``gettext`` writes.
    __dict__ = property(lambda _: _of_caller() or SHARED)

    def __getattr__(self, name: str) -> Any:
        """Look up a name that only the calling function's copy has."""
        try:
            return (_of_caller() or SHARED)[name]
        except KeyError:
            raise AttributeError(f"module 'builtins' has no attribute {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        copy = _of_caller()
        if copy is not None:
            copy[name] = value
        if copy is None or name not in OWN:
            SHARED[name] = value

    def __delattr__(self, name: str) -> None:
        copy = _of_caller()
        if name not in (copy or SHARED):
            raise AttributeError(name)
        if copy is not None:
            del copy[name]
        if copy is None or name not in OWN:
            SHARED.pop(name, None)
