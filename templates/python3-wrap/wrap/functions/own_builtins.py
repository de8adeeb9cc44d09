"""The module ``builtins``, in which each function has names of its own.

The modules of a function run with a copy of the builtins (`wrap.functions.namespace`). The copy has
what the function's code, or a library that it calls, sets in ``builtins``: ``gettext`` installs
``_`` there, for the language of a request.
"""

from __future__ import annotations

import builtins
from types import ModuleType
from typing import Any

from wrap.functions import public

#: The builtins of which each function has its own. No other function gets what one sets there.
OWN = ("__import__", "open")
#: The builtins of all other modules.
SHARED: dict[str, Any] = vars(builtins)
#: Those of functions, by their packages.
_copies: dict[str, dict[str, Any]] = {}


def add(package: str, own: dict[str, Any]) -> dict[str, Any]:
    """The builtins of the function with that package: a copy, with its `own`."""
    found = _copies[package] = SHARED | own
    ModuleType.__setattr__(builtins, "__class__", Builtins)
    return found


def update(copy: dict[str, Any]) -> None:
    """Add to a function's builtins what libraries have set in those of all modules."""
    copy.update({name: each for name, each in SHARED.items() if name not in OWN})


def _of_caller() -> dict[str, Any] | None:
    return _copies.get(public.caller() or "")


def _own(name: str) -> property:
    return property(lambda _: (_of_caller() or SHARED)[name])


class Builtins(ModuleType):
    """The module ``builtins`` as the function that calls sees it; as usual for all others."""

    __import__, open = map(_own, OWN)
    #: Where ``gettext`` writes.
    __dict__ = property(lambda _: _of_caller() or SHARED)

    def __getattr__(self, name: str) -> Any:
        """A name that the function alone has."""
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
