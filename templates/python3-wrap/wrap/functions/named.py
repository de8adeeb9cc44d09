"""Snapshots of library objects that a function's code can reach by name.

All functions of a process share a library's classes, lists and module variables. A function that
changes them changes them for all. Its code reaches them by names from the modules that it imports.
"""

from __future__ import annotations

import abc
import ast
import contextlib
import dis
import functools
import inspect
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any, NamedTuple

from wrap.functions.public import SHARED
from wrap.functions.snapshot import STATE, is_ours

#: Object name -> the object and its content: attribute name -> value, or (key,) -> item.
Held = Mapping[str, tuple[Any, Mapping[Any, Any]]]
#: Modules that `wrap.functions.snapshot` compares.
_COMPARED = frozenset({*STATE, "sys", "builtins", "__main__", "os"})
#: The longest path from a module to an object, in names.
_MOST_NAMES = 4
#: Names through which code sets items of a module's namespace.
_NAMESPACES = {"__dict__", "vars"}
_PLAIN = (int, float, complex, str, bytes)
_OF_GLOBALS = ("STORE_GLOBAL", "LOAD_GLOBAL")


class _Used(dict[Any, Any]):
    """The content of an object that a named function of its library reads.

    The function may fill an empty place, as a cache does.
    """


class Names(NamedTuple):
    """The modules that code imports, and all other names in it."""

    modules: frozenset[str]
    others: frozenset[str]


@functools.cache
def names_in(folder: Path) -> Names:
    """Return the names in the Python files below `folder`; skips files with syntax errors."""
    modules, others = set[str](), set[str]()
    for file in folder.rglob("*.py"):
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, OSError):
            for node in ast.walk(ast.parse(file.read_bytes())):
                match node:
                    case ast.Import():
                        modules.update(each.name for each in node.names)
                    case ast.ImportFrom(module=str(name), level=0):
                        modules.add(name)
                        others.update(each.name for each in node.names)
                    case ast.Name(id=name) | ast.Attribute(attr=name):
                        others.add(name)
                    case ast.Constant(value=str(name)) if name.isidentifier():
                        others.add(name)  # for setattr()
    return Names(frozenset(modules), frozenset(others))


def held(folder: Path) -> Held:
    """Return the content of each object that the code in `folder` can name in imported modules."""
    names = names_in(folder)
    found = dict[str, tuple[Any, Mapping[Any, Any]]]()
    seen = set[int]()
    for name in sorted(names.modules):
        parts = name.split(".")
        for end in range(len(parts)):
            module = ".".join(parts[: end + 1])
            if module in sys.modules:
                _reach(sys.modules[module], module, _MOST_NAMES, names.others, found, seen)
    return found


def changed(before: Held, after: Held) -> Iterator[str]:
    """Yield the names of attributes and containers whose content differs in `after`."""
    for label in before.keys() & after.keys():
        (one, old), (other, new) = before[label], after[label]
        for name in {*old, *new} if one is other else ():  # else another object holds it
            made = isinstance(old, _Used) and _is_cached(one, name, old, new.get(name))
            made |= isinstance(one, FunctionType) and name not in old  # as it compiles itself
            if not made and _differ(old, new, name):
                yield f"{label}.{name}" if isinstance(name, str) else label


def _is_cached(value: Any, name: Any, old: Mapping[Any, Any], new: Any) -> bool:
    """Whether `name` was empty before, as in a cache or a lazily created object."""
    if isinstance(name, str) and getattr(type(value), name, None) is not None:
        return False  # its class has a default
    return old.get(name) is None and type(value) is not list and not _has_own(new)


def _has_own(value: Any) -> bool:
    """Whether `value` is, or is a tuple with, a class or function of the handler's own code."""
    parts = value if isinstance(value, tuple) else (value,)
    return any(isinstance(p, FunctionType | type) and is_ours(str(p.__module__)) for p in parts)


def _differ(old: Mapping[Any, Any], new: Mapping[Any, Any], name: Any) -> bool:
    return name not in old or name not in new or not _is_same(old[name], new[name])


def _reach(
    value: Any,
    label: str,
    names_left: int,
    names: frozenset[str],
    found: dict[str, tuple[Any, Mapping[Any, Any]]],
    seen: set[int],
) -> None:
    """Add to `found` the content of `value` and, recursively, of its attributes in `names`."""
    if isinstance(value, type):
        label = f"{value.__module__}.{value.__qualname__}"
    elif isinstance(value, ModuleType):
        label = value.__name__
    if id(value) in seen or label in _COMPARED or is_ours(label):
        return
    seen.add(id(value))
    with contextlib.suppress(Exception):  # objects of libraries may do anything
        holds = dict(_holds(value))
        if not isinstance(value, ModuleType):  # the observer records assignments to modules
            found[label] = value, holds
        elif names & _NAMESPACES:
            found[label] = value, _Used(holds)
        for base in value.__mro__[1:-1] if isinstance(value, type) else ():
            _reach(base, label, names_left, names, found, seen)
        for name in sorted(names & holds.keys()) if names_left else ():
            _reach(holds[name], f"{label}.{name}", names_left - 1, names, found, seen)
        for name, used, is_set in _used(value, names, holds):
            content = dict(_holds(used))
            is_cache = not (is_set and isinstance(used, dict | type))
            found.setdefault(f"{label}.{name}", (used, _Used(content) if is_cache else content))


def _used(
    value: Any, names: frozenset[str], holds: Mapping[Any, Any]
) -> Iterator[tuple[str, Any, bool]]:
    """Yield the objects that the functions of `value` in `names` read, and whether to set them.

    Objects that these functions read through another function of their module are included.
    """
    is_module = isinstance(value, ModuleType)
    members = value if isinstance(value, type) else type(value)
    for name in names:
        call = holds.get(name) if is_module else getattr(members, name, None)
        call = getattr(call, "__func__", call)  # of a class method
        if isinstance(call, FunctionType) and not _is_standard(call):
            known = call.__globals__ if is_module else holds
            looked = _names_of(call.__code__)
            set_by = {*looked} if _is_setter(call) else set[str]()
            for each in known.keys() & looked:
                inner = getattr(known[each], "__func__", known[each])
                if isinstance(inner, FunctionType) and inner.__module__ == call.__module__:
                    looked |= _names_of(inner.__code__)
                    if set_by and _is_setter(inner):
                        set_by |= _names_of(inner.__code__)
            for each in sorted(known.keys() & looked):
                kinds = ModuleType | FunctionType | (type if each not in set_by else ModuleType)
                if not isinstance(known[each], kinds):
                    yield each, known[each], each in set_by


def _is_setter(function: FunctionType) -> bool:
    """Whether `function` takes arguments and returns nothing, unlike functions with a cache."""
    code = function.__code__
    return code.co_argcount > (code.co_varnames[:1] == ("self",)) and _returns_none(code)


@functools.cache
def _returns_none(code: CodeType) -> bool:
    steps = [(each.opname, each.argval) for each in dis.get_instructions(code)]
    values = [at for at, (how, _) in enumerate(steps) if how == "RETURN_VALUE"]
    constants = [value for how, value in steps if how == "RETURN_CONST"]  # from Python 3.12 on
    is_none = all(steps[at - 1] == ("LOAD_CONST", None) for at in values)
    return is_none and set(constants) <= {None} and not code.co_flags & inspect.CO_GENERATOR


def _names_of(code: CodeType) -> set[str]:
    """Return the names in a function's code and in its nested functions."""
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return {*code.co_names}.union(*map(_names_of, inner))


def _holds(value: Any) -> Iterable[tuple[Any, Any]]:
    """Yield the attributes or items of a value that all threads share."""
    if isinstance(value, type):
        yield from (each for each in vars(value).items() if not each[0].startswith(("__", "_abc_")))
        if isinstance(value, abc.ABCMeta):
            yield from _registered(value)
    elif isinstance(value, dict):
        yield from (((key,), each) for key, each in list(dict.items(value)))
    elif isinstance(value, list | deque):
        yield from (((number,), each) for number, each in enumerate(list(value)))
    elif isinstance(value, set):
        yield from (((each,), None) for each in list(value))
    elif isinstance(value, FunctionType):
        for call in () if _is_standard(value) else (value, *_called(value)):
            sets, looks = _sets(call.__code__)
            for name in sets:
                held = call.__globals__.get(name)
                if held is not None or name not in looks:  # else it is created lazily
                    yield (name,), held
        yield from vars(value).items()
    elif type(value) not in _PLAIN and not isinstance(value, threading.local):
        yield from _attributes(value)


def _is_standard(function: FunctionType) -> bool:
    """Whether `function` is of the standard library, whose setters the observer lists."""
    return str(function.__module__).partition(".")[0] in sys.stdlib_module_names


def _called(function: FunctionType) -> Iterator[FunctionType]:
    """Yield the functions of the same package that `function` may call."""
    package = str(function.__module__).partition(".")[0]
    for name in function.__code__.co_names:
        call = function.__globals__.get(name)
        if isinstance(call, FunctionType) and str(call.__module__).partition(".")[0] == package:
            yield call


@functools.cache
def _sets(code: CodeType) -> tuple[list[str], list[str]]:
    """Return the module-level names that code stores and those that it loads."""
    done = [(each.opname, each.argval) for each in dis.get_instructions(code)]
    sets, looks = ([name for how, name in done if how == each] for each in _OF_GLOBALS)
    return sets, looks


def _attributes(value: Any) -> Iterable[tuple[str, Any]]:
    """Return the attributes of an object; none of a proxy, which forwards to another object."""
    kinds = type(value).__mro__
    own = next((vars(each)["__dict__"] for each in kinds if "__dict__" in vars(each)), None)
    if own is None:
        names = [name for name, each in vars(kinds[0]).items() if _is_field(name, each)]
        fields = [(name, getattr(value, name)) for name in names]
        # Some attributes are a new object at every read.
        kept = [(name, each) for name, each in fields if _is_same(each, getattr(value, name))]
        return [*kept, *_slots(value)]
    is_real = isinstance(own, GetSetDescriptorType | MemberDescriptorType)
    return [*own.__get__(value).items(), *_slots(value)] if is_real else []


def _slots(value: Any) -> Iterator[tuple[str, Any]]:
    for kind in type(value).__mro__:
        for name, each in vars(kind).items() if "__slots__" in vars(kind) else ():
            if isinstance(each, MemberDescriptorType):
                with contextlib.suppress(AttributeError):  # it is not set
                    yield name, each.__get__(value)


def _is_field(name: str, descriptor: object) -> bool:
    return isinstance(descriptor, GetSetDescriptorType) and not name.startswith("_")


def _registered(kind: Any) -> Iterable[tuple[Any, Any]]:
    """Yield the library classes registered with an abstract class by ``register``."""
    dump: Any = abc._get_dump  # type: ignore[attr-defined]
    for reference in dump(kind)[0]:
        each = reference()
        if each is not None and str(each.__module__).partition(".")[0] not in SHARED:
            yield (each,), None


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and type(one) in _PLAIN and one == other)
