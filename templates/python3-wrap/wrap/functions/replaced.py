"""Finds functions' own code in libraries: in attributes of classes and in registries."""

from __future__ import annotations

import functools
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any
from weakref import WeakSet, WeakValueDictionary

from wrap.functions.public import PACKAGE, SHARED
from wrap.functions.snapshot import FUNCTION, is_ours

#: The beginning of the names of a function's modules below the first.
_INSIDE = f"{PACKAGE}."
#: How many levels of nested containers of a registry are searched.
_DEPTH = 1
_CODE = (FunctionType, MethodType)
#: Every module has these: a thousand modules refer to the same built-in names.
_OF_EVERY_MODULE = {"__all__", "__builtins__"}


def modules() -> Iterator[ModuleType]:
    """Yield the modules that belong neither to a function nor to the wrap."""
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType) and not is_ours(name):
            yield module


def named_modules() -> Iterator[ModuleType]:
    """Yield functions' modules, the modules that they import by name, and submodules of those."""
    for own in [module for name, module in list(sys.modules.items()) if name.startswith(FUNCTION)]:
        yield own
        for imported in _modules_in(own):
            if not is_ours(imported.__name__):
                yield imported
                for below in _modules_in(imported):
                    if below.__name__.startswith(f"{imported.__name__}."):
                        yield below


def _modules_in(module: ModuleType) -> list[ModuleType]:
    return [value for value in list(vars(module).values()) if isinstance(value, ModuleType)]


def methods_replaced(modules: Iterable[ModuleType]) -> set[str]:
    """Return the methods and registries of classes in `modules` that refer to a function's code."""
    found = set()
    values = (value for module in modules for value in list(vars(module).values()))
    for each in {id(value): value for value in values if isinstance(value, type)}.values():
        if is_ours(str(each.__module__)):
            continue
        for name, value in list(vars(each).items()):
            # Types are compared first, as a call for each attribute would dominate the time.
            if (type(value) in _CODE and _is_own(value)) or (
                type(value) is dict and any(map(_is_own, list(value.values())))
            ):
                found.add(f"{each.__module__}.{each.__qualname__}.{name}")
    return found


def third_party() -> list[ModuleType]:
    standard = sys.stdlib_module_names
    return [
        each
        for each in modules()
        if issubclass(type(each), ModuleType) and each.__name__.partition(".")[0] not in standard
    ]


def registries() -> set[str]:
    """Return the containers of installed libraries with a function's own classes, code or names.

    Functions' modules share names, so registries keyed by module names would mix functions up.
    """
    return {
        f"{module.__name__}.{name}"
        for module in third_party()
        for name, value in list(vars(module).items())
        if name not in _OF_EVERY_MODULE and _has_own(value, _DEPTH)
    }


def _has_own(value: object, depth: int) -> bool:
    # Not `isinstance`: proxies claim the class of another object.
    items = _items_of(type(value))  # type: ignore[arg-type]
    if items is None:
        return False
    for each in list(items(value)):
        if type(each) is str:
            if each.startswith(_INSIDE):
                return True
        elif _is_own(each) or (depth > 0 and _has_own(each, depth - 1)):
            return True
    return False


@functools.cache
def _items_of(kind: type) -> Callable[[Any], Iterable[Any]] | None:
    """Return a getter of the values of a container class; None for other classes."""
    if issubclass(kind, dict):
        return dict.values
    if issubclass(kind, list | set | deque | WeakSet):
        return iter
    return WeakValueDictionary.values if issubclass(kind, WeakValueDictionary) else None


def _is_own(value: object) -> bool:
    if isinstance(value, type):
        return _is_name(value.__module__)
    code = getattr(value, "__func__", value) if isinstance(value, MethodType) else value
    return isinstance(code, FunctionType) and _is_name(code.__globals__.get("__name__"))


def _is_name(module: object) -> bool:
    """Whether a function's module has this name."""
    return str(module).partition(".")[0] in SHARED
