"""Compiles functions with numba, and remembers the machine code where there is a place for it.

numba sees a change of the file that a function is in, not of one that it calls: what is compiled
has to be touched together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba.core.cpu import CPUTargetOptions

Function = TypeVar("Function", bound=Callable[..., object])


def entry(function: Function) -> Function:
    """`function` as machine code, kept in a cache on disk if one can be written."""
    return _compiled(function, error_model="numpy")


def inner(function: Function) -> Function:
    """The same for what only an `entry` calls and what allocates nothing.

    Without counting the references to arrays, which the entry keeps alive, it is five times as
    fast. A numba that knows no such option counts them.
    """
    wanted = {"forceinline": True, "_nrt": False}
    known = {name: value for name, value in wanted.items() if hasattr(CPUTargetOptions, name)}
    return _compiled(function, error_model="numpy", **known)


def _compiled(function: Function, **options: Any) -> Function:
    try:
        kept: Function = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder is writable: compiled again in every process
        kept = numba.njit(**options)(function)
    return kept
