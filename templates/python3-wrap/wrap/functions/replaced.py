"""The attributes of libraries' classes in which a function has put its own code."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import FunctionType, MethodType, ModuleType

from wrap.functions.public import PACKAGE
from wrap.functions.snapshot import FUNCTION, is_ours

_CODE = (FunctionType, MethodType)


def modules() -> Iterator[ModuleType]:
    """Those that are no function's and not the wrap's."""
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType) and not is_ours(name):
            yield module


def named_modules() -> Iterator[ModuleType]:
    """The modules of functions, what these have imported by a name, and the modules below it."""
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
    """The methods and registries of classes in `modules` with a function's own code."""
    found = set()
    classes = {id(value): value for module in modules for value in _classes_of(module)}
    for each in classes.values():
        for name, value in list(vars(each).items()):
            # Most attributes are neither: a call for each would take most of the time.
            if (type(value) in _CODE and _is_own(value)) or (
                type(value) is dict and any(map(_is_own, list(value.values())))
            ):
                found.add(f"{each.__module__}.{each.__qualname__}.{name}")
    return found


def _is_own(value: object) -> bool:
    code = getattr(value, "__func__", value) if isinstance(value, MethodType) else value
    if not isinstance(code, FunctionType):
        return False
    by = str(code.__globals__.get("__name__", ""))
    return by == PACKAGE or by.startswith(f"{PACKAGE}.")


def _classes_of(module: ModuleType) -> list[type]:
    values = list(vars(module).values())
    classes = [value for value in values if isinstance(value, type)]
    return [each for each in classes if not is_ours(str(each.__module__))]
