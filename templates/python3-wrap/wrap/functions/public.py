"""Public names of functions' modules in ``sys.modules``: ``function``, ``function.util``, ``util``.

Pickles, `dataclasses`, `typing` and ``importlib.resources`` look classes up by these names. Several
functions of a process have modules of the same name. A proxy stands under each name: it forwards to
the module of the calling function, which it finds in the call stack.
In a process that a handler spawns, ``function`` is the function's folder, as it is alone.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

#: The name under which OpenFaaS's templates import the handler's folder.
PACKAGE = "function"
#: The attribute of a thread with the package of the function that started it.
_STARTED = "_chiron_package"
#: The function that prepares spawned processes, in modules of `multiprocessing` and its forks.
_SPAWN, _PREPARES = ".spawn", "get_preparation_data"
_SPAWNED = Path(__file__).with_name("spawned.py")
#: Package name -> the function's folder.
_folders: dict[str, Path] = {}
#: Top-level names in ``sys.modules`` that mean another module for each function.
SHARED = {PACKAGE}


def add(package: str, folder: Path) -> None:
    """Register `package` for the modules of the function in `folder`."""
    if not _folders:
        sys.meta_path.insert(0, _Finder())
        manager = logging.Logger.manager
        usual = manager.getLogger
        # A logger named after a function's module belongs to that function, with its handlers.

        def logger(name: str) -> logging.Logger:
            own = _own(name)
            found = usual(own or name)
            if own is not None:
                found.name = name
            return found

        manager.getLogger = logger  # type: ignore[method-assign]
        start = threading.Thread.start

        def start_of(thread: threading.Thread) -> None:
            thread.__dict__[_STARTED] = caller()
            start(thread)

        threading.Thread.start = start_of  # type: ignore[method-assign, assignment]
    _folders[package] = folder.resolve()
    share(PACKAGE)


def share(name: str) -> None:
    """Put a proxy for each function's own module at `name` in ``sys.modules``."""
    found = sys.modules.get(name)
    if not isinstance(found, _Shared):
        sys.modules[name] = _Shared(name, found)


def share_own(name: str) -> None:
    """Share a bare name under which a function has imported a module of its own.

    A name that another module uses, such as the wrap's own package, stays as it is.
    """
    top = name.partition(".")[0]
    if not may_share(top):
        return
    SHARED.add(top)
    while name:
        share(name)
        name = name.rpartition(".")[0]


def may_share(top: str) -> bool:
    """Whether only functions' own modules use the name `top` in ``sys.modules``."""
    return isinstance(sys.modules.get(top), _Shared | None)


def is_of_others(name: str) -> bool:
    """Whether `name` exists only as a module of other functions."""
    found = sys.modules.get(name)
    return isinstance(found, _Shared) and ModuleType.__getattribute__(found, "_chiron")[1] is None


def folders() -> set[str]:
    """Return the folders of all functions; functions may have added them to ``sys.path``."""
    return {str(folder) for folder in _folders.values()}


def package_at(path: str) -> str | None:
    """Return the package of the function whose folder contains `path`, or None."""
    whole = os.path.realpath(path)
    found = (each for each, at in _folders.items() if f"{whole}/".startswith(f"{at}/"))
    return next(found, None)


def is_public(module: str) -> bool:
    """Whether the module at `module` in ``sys.modules`` belongs to no function."""
    top = module.partition(".")[0]
    return top not in SHARED and top not in _folders


def package_of(names: Mapping[str, Any]) -> str | None:
    """Return the package of the function whose module has these globals, or None."""
    name = getattr(names.get("__spec__"), "name", None)
    package = name.partition(".")[0] if isinstance(name, str) else ""
    return package if package in _folders else None


def directory() -> str | None:
    """Return the working directory that the calling function has alone."""
    package = caller()
    return package and str(_folders[package].parent)


def caller() -> str | None:
    """Return the package of the function whose code is nearest in the call stack.

    Falls back to the only function, or to the function that started the thread.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if package := package_of(frame.f_globals):
            return package
        frame = frame.f_back
    if len(_folders) == 1:
        return next(iter(_folders))
    started: str | None = threading.current_thread().__dict__.get(_STARTED)
    return started


def _own(name: object) -> str | None:
    """Return the name in ``sys.modules`` of the module that the caller knows as `name`."""
    top = name.partition(".")[0] if isinstance(name, str) else ""
    package = caller() if top in SHARED else None
    if package is None or top == PACKAGE:
        return package and package + str(name).removeprefix(PACKAGE)
    own = f"{package}.{top}"
    is_here = own in sys.modules or importlib.util.find_spec(own) is not None
    return f"{package}.{name}" if is_here else None


def _is_found_by_path(name: str) -> bool:
    """Whether ``sys.path`` leads to a function's module: functions may add their folders."""
    own = folders()
    if own.isdisjoint(sys.path):
        return False
    found = PathFinder.find_spec(name)
    origin = (found and found.origin) or ""
    return any(origin.startswith(f"{folder}/") for folder in own)


class _Shared(ModuleType):
    """A proxy that forwards to the calling function's module of this name.

    For callers outside functions it forwards to `usual`, the module that had the name before.
    """

    def __init__(self, name: str, usual: ModuleType | None) -> None:
        super().__init__(name)
        super().__setattr__("_chiron", (name, usual))

    def __getattribute__(self, name: str) -> Any:
        return getattr(_module(self), name)

    def __setattr__(self, name: str, value: object) -> None:
        # The import system binds a module to its package and sets its specification.
        if name != "__spec__" and not isinstance(value, _Shared):
            setattr(_module(self), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(_module(self), name)


def _module(shared: _Shared) -> ModuleType:
    name, usual = ModuleType.__getattribute__(shared, "_chiron")
    own = _own(name)
    try:
        found = usual if own is None else sys.modules.get(own) or importlib.import_module(own)
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise AttributeError(f"no function that can be told here has a module {name}")
    return found


class _Finder:
    """Finds ``function.util`` for imports that bypass the function's own ``__import__``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.endswith(_SPAWN) and is_public(fullname):
            spec = PathFinder.find_spec(fullname, path)
            if spec is not None and spec.loader is not None:
                loader: Any = _SpawnLoader(spec.loader)
                spec.loader = loader
            return spec
        if path is None and _is_found_by_path(fullname):
            SHARED.add(fullname)
        own = _own(fullname)
        found = None if own is None else importlib.util.find_spec(own)
        if found is None:
            return None
        loader = _SharedLoader(found)
        spec = ModuleSpec(fullname, loader, origin=found.origin)
        spec.submodule_search_locations = found.submodule_search_locations
        return spec


class _SharedLoader:
    """Imports the function's own module; forwards all else to that module's loader."""

    def __init__(self, own: ModuleSpec) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own.loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Shared(spec.name, None)

    def exec_module(self, module: ModuleType) -> None:
        importlib.import_module(self._own.name)


class _SpawnLoader:
    """Loads a module of `_SPAWN` and lets processes that handlers spawn begin with `spawned.py`."""

    def __init__(self, usual: Any) -> None:
        self._usual = usual

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        found: ModuleType | None = self._usual.create_module(spec)
        return found

    def exec_module(self, module: ModuleType) -> None:
        self._usual.exec_module(module)
        usual = module.__dict__.get(_PREPARES)
        if usual is None:
            return

        def get_preparation_data(*arguments: Any, **named: Any) -> Mapping[str, Any]:
            found: dict[str, Any] = usual(*arguments, **named)
            if package := caller():
                found["sys_path"] = [*found["sys_path"], str(_folders[package])]
                found["init_main_from_path"] = str(_SPAWNED)
            return found

        module.__dict__[_PREPARES] = get_preparation_data
