"""Detects changes of process-wide state while a block of code runs."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial, update_wrapper
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from wrap.functions import named
from wrap.functions.own_builtins import Builtins
from wrap.functions.public import package_at
from wrap.functions.setting_calls import CALLS, METHODS
from wrap.functions.snapshot import (
    ENVIRONMENT,
    SETTERS,
    STATE,
    VARIABLE,
    changed,
    is_ours,
    is_told,
    named_variable,
    raising,
    settings_changed,
    snapshot,
)

_BOOTSTRAP: Any = importlib.import_module("_frozen_importlib")


class Observer:
    """Detects changes of process-wide state; does nothing while another observer is active.

    Args:
        settings_only: whether to record only `settings`.
    """

    def __init__(self, folder: Path | None = None, *, settings_only: bool = False) -> None:
        #: The changed names, as `module.name`; complete when the block has ended.
        self.found = set[str]()
        self._settings_only = settings_only
        #: Parts of the state with a setter: name -> value before, value after.
        self.settings: dict[str, tuple[Any, Any]] = {}
        self._folder = folder
        self._before: dict[str, Any] = {}
        self._held: named.Held = {}
        self._importing = threading.local()
        self._watched = set[str]()
        self._undo: list[Callable[[], None]] = []

    def __enter__(self) -> Observer:
        global _observer
        if not _at_work.acquire(blocking=False):
            return self
        if not self._settings_only:
            _audit_once()
        self._replace(_BOOTSTRAP, "_find_and_load", self._loading)
        self._look()
        _observer = self
        return self

    def __exit__(self, *_: object) -> None:
        global _observer
        if _observer is not self:
            return
        _observer = None
        self._compare()
        for undo in reversed(self._undo):
            undo()
        _at_work.release()

    @property
    def is_importing(self) -> bool:
        return getattr(self._importing, "now", False)

    def _compare(self) -> None:
        """Add the changes since the last snapshot."""
        try:
            after = self._snapshot()
            self.found |= changed(self._before, after, self._folder)
            self.found |= set(named.changed(self._held, self._holds()))
            for name, (before, now) in settings_changed(self._before, after).items():
                first, _ = self.settings.get(name, (before, now))
                self.settings[name] = (first, now)
        except Exception as error:  # objects of libraries may do anything when they are looked at
            print(f"not all changes of the process can be found: {type(error).__name__}: {error}")

    def _loading(self, original: Callable[..., Any], name: str, *more: Any) -> Any:
        """Import a module, and ignore the changes that a library makes while it is imported.

        A package in the function's folder is a change: other functions would import it too.
        """
        if self.is_importing or is_ours(name) or _observer is not self:
            return original(name, *more)
        self._compare()
        self._importing.now = True
        try:
            variables = {each for each in self.settings if each.startswith(VARIABLE)}
            with _read_by(name, variables, self.found) if variables else nullcontext():
                module = original(name, *more)
            if package_at(str(getattr(module, "__file__", None) or "/")) is not None:
                self.found.add("sys.modules")
            return module
        finally:
            self._importing.now = False
            self._look()

    def _look(self) -> None:
        if not self._settings_only:
            self._watch_modules()
        self._before = self._snapshot()
        self._held = self._holds()

    def _holds(self) -> named.Held:
        if self._folder is None or self._settings_only:
            return {}
        return named.held(self._folder)

    def _snapshot(self) -> dict[str, Any]:
        if self._settings_only:
            return {name: STATE[name]() for name in (*SETTERS, ENVIRONMENT)}
        return snapshot()

    def _watch_modules(self) -> None:
        """Watch assignments to all modules, including those imported since the last call."""
        for name, module in list(sys.modules.items()):
            if name in self._watched or is_ours(name):
                continue
            self._watched.add(name)
            kind = type(module)
            if kind not in _WATCHED:
                continue
            if name in METHODS:
                self._watch_method(module, *METHODS[name])
            for call, concerns in CALLS.get(name, {}).items():
                if hasattr(module, call):
                    label = f"{name.lstrip('_')}.{call.lstrip('_')}"
                    self._replace(module, call, partial(self._set, label, concerns))
            with contextlib.suppress(TypeError):
                ModuleType.__setattr__(module, "__class__", _WATCHED[kind])
                self._undo.append(partial(ModuleType.__setattr__, module, "__class__", kind))

    def _watch_method(self, module: Any, kind: str, name: str, label: Callable[..., str]) -> None:
        """Record each call of a method under the name that `label` makes of its arguments."""
        of = getattr(module, kind)
        usual = getattr(of, name)

        def call(*arguments: Any) -> Any:
            value = usual(*arguments)
            seen = _observer
            if seen is not None and not seen.is_importing:
                seen.found |= {label(*arguments)} - {""}
            return value

        setattr(of, name, call)
        self._undo.append(partial(setattr, of, name, usual))

    def _replace(self, module: Any, name: str, instead: Callable[..., Any]) -> None:
        names = vars(module)
        own, original = name in names, getattr(module, name)
        replacement = update_wrapper(partial(instead, original), original, updated=())
        names[name] = replacement

        def undo() -> None:
            if names.get(name) is replacement and own:
                names[name] = original
            elif names.get(name) is replacement:
                del names[name]

        self._undo.append(undo)

    def _set(
        self,
        label: str,
        concerns: Callable[..., bool],
        original: Callable[..., Any],
        *arguments: Any,
        **options: Any,
    ) -> Any:
        value = original(*arguments, **options)
        seen = _observer  # of a later run, if the call was imported by its name
        if seen is not None and not seen.is_importing and concerns(*arguments, **options):
            seen.found.add(label)
        return value

    def assigned(self, module: ModuleType, name: str, frame: FrameType, *value: Any) -> None:
        """Record that the code of `frame` sets or deletes ``module.name``."""
        if self.is_importing or name.startswith(("__", "last_")):
            return
        if value and vars(module).get(name) is value[0]:
            return
        setter, whole = _module_of(frame), f"{module.__name__}.{name}"
        if module is warnings and setter == "warnings":  # it is ``catch_warnings``
            # A library's use is short and can cost other functions a line of the log at most.
            if frame.f_back is not None and is_ours(_module_of(frame.f_back)):
                if name == "_showwarnmsg_impl":
                    self.found.add("warnings.catch_warnings")
                elif name == "filters" and raising() != self._before["warnings.filterwarnings"]:
                    self.found.add("warnings.filterwarnings")
        elif whole in _COMPARED or (setter == "logging" and module is warnings):
            return
        elif setter.partition(".")[0] != module.__name__.partition(".")[0]:
            self.found.add(whole)

    def variable(self, name: str, value: str | None) -> None:
        """Record that an environment variable is set to `value`, or removed (None)."""
        if not self.is_importing and os.environ.get(name) != value and is_told(name):
            self.found.add(named_variable(name))


@contextlib.contextmanager
def _read_by(library: str, changed: set[str], found: set[str]) -> Iterator[None]:
    """Add to `found` the `changed` variables that a block, which imports a library, reads.

    Setting the variables back would not undo what the library has read: all functions share it.
    """

    class Recorded(os._Environ):  # type: ignore[type-arg]
        def __getitem__(self, name: str) -> str:
            if named_variable(name) in changed and is_told(name):
                found.add(f"{library} by {named_variable(name)}")
            value: str = super().__getitem__(name)
            return value

    usual = type(os.environ)
    os.environ.__class__ = Recorded
    try:
        yield
    finally:
        os.environ.__class__ = usual


_observer: Observer | None = None
_at_work = threading.Lock()
_audited = False


class _Watched(ModuleType):
    """A module whose assignments the observer records."""

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        """Return a plain module: the import system creates modules by the type of ``sys``."""
        return ModuleType(*arguments, **options)

    def __setattr__(self, name: str, value: Any) -> None:
        if _observer is not None:
            _observer.assigned(self, name, sys._getframe(1), value)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if _observer is not None:
            _observer.assigned(self, name, sys._getframe(1))
        super().__delattr__(name)


class _WatchedBuiltins(_Watched, Builtins):
    """The module ``builtins`` while the observer records its assignments."""


_WATCHED: Mapping[type, type] = {ModuleType: _Watched, Builtins: _WatchedBuiltins}


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _observer is None:
        return
    if event == "os.putenv":
        _observer.variable(os.fsdecode(arguments[0]), os.fsdecode(arguments[1]))
    elif event == "os.unsetenv":
        _observer.variable(os.fsdecode(arguments[0]), None)
    elif event in _EVENTS and not _observer.is_importing:
        _observer.found |= {_EVENTS[event](*arguments)} - {""}


def _symbol(*arguments: Any) -> str:
    """Return the C function that is looked up, if it is in `_OF_C`; Python 3.11 passes it first."""
    names = [each for each in arguments if isinstance(each, str) and each in _OF_C]
    return f"ctypes.{names[0]}" if names else ""


def _database(name: Any = "", *_arguments: Any) -> str:
    """Name an in-memory database that all connections of the process share."""
    text = os.fsdecode(name) if isinstance(name, str | bytes | os.PathLike) else ""
    return "sqlite3.connect" if "memory" in text and "cache=shared" in text else ""


#: C functions that change the process without a trace in Python's own state.
_OF_C = frozenset(
    {
        "chdir",
        "chroot",
        "clearenv",
        "fchdir",
        "lcong48",
        "nice",
        "prctl",
        "putenv",
        "seed48",
        "setenv",
        "setlocale",
        "setpriority",
        "setrlimit",
        "sigaction",
        "signal",
        "srand",
        "srand48",
        "srandom",
        "tzset",
        "umask",
        "unsetenv",
        "uselocale",
    }
)
#: Audit event -> the name of the change, computed from the event's arguments, or an empty string.
_EVENTS: Mapping[str, Callable[..., str]] = {
    "os.chdir": lambda *_: "os.chdir",
    "ctypes.dlsym": _symbol,
    "sqlite3.connect": _database,
}


def _audit_once() -> None:
    """Install `_audit`, once: an audit hook cannot be removed."""
    global _audited
    if not _audited:
        sys.addaudithook(_audit)
        _audited = True


#: Names that snapshots compare, so that their assignments need no watching.
_COMPARED = frozenset({"sys.path", "sys.argv", "sys.meta_path", "warnings.filters"})
