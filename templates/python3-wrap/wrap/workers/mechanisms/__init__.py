"""The mechanisms: how further processes come to be. A module each; the rest knows none by name."""

from __future__ import annotations

import pkgutil
from collections.abc import Collection, Mapping
from importlib import import_module

from wrap.workers.mechanisms.mechanism import Mechanism

for _module in pkgutil.iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

#: The mechanisms of all modules here, by their names.
_MECHANISMS = {each.name: each for each in Mechanism.__subclasses__()}


def mechanism_of(
    name: str, slots: int, environment: Mapping[str, str], unforked: Collection[int] = ()
) -> Mechanism:
    """The mechanism called `name` for a wrap of so many slots, its further processes.

    No process can be forked that has the functions of the slots `unforked`.

    Raises ValueError if there is no such mechanism, or if a setting of it in `environment` is none.
    """
    if name not in _MECHANISMS:
        raise ValueError(f"mechanism {name!r} is none of {', '.join(_MECHANISMS)}")
    return _MECHANISMS[name](slots, environment, unforked)
