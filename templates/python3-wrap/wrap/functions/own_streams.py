"""The standard streams of the module ``sys``, with streams of its own for each function.

What a function assigns to ``sys.stdout``, as ``contextlib.redirect_stdout`` does, is that of its
own code and threads. ``print`` reads the module's dictionary, where a `_Standing` finds the stream
of the function that prints.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from wrap.functions import public

_NAMES = ("stdin", "stdout", "stderr")
#: Name -> the stream of functions that have set none.
_usual: dict[str, Any] = {}
#: Name and package of a function -> the stream that it has set.
_set: dict[tuple[str, str | None], Any] = {}


def share() -> None:
    """Let several functions of this process use the module ``sys``."""
    if not _usual:
        names = vars(sys)
        for name in _NAMES:
            _usual[name], names[name] = names[name], _Standing(name)
        ModuleType.__setattr__(sys, "__class__", _Sys)


def _get(name: str) -> Any:
    return _set.get((name, public.caller()), _usual[name]) if _set else _usual[name]


def _own(name: str) -> property:
    def assign(_: ModuleType, stream: Any) -> None:
        if stream is _usual[name] or isinstance(stream, _Standing):
            _set.pop((name, public.caller()), None)
        else:
            _set[name, public.caller()] = stream

    return property(lambda _: _get(name), assign)


class _Sys(ModuleType):
    """The module ``sys``: each calling function sees its own streams."""

    stdin, stdout, stderr = map(_own, _NAMES)


class _Standing:
    """Forwards to the stream of the calling function, which may be None."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(_get(self._name), name)

    def write(self, text: str) -> Any:
        stream = _get(self._name)
        return len(text) if stream is None else stream.write(text)

    def flush(self) -> None:
        stream = _get(self._name)
        if stream is not None:
            stream.flush()
