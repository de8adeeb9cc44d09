"""The mechanisms by which worker processes are made, a module each; nothing else names them."""

from __future__ import annotations

import pkgutil
from collections.abc import Collection, Mapping
from importlib import import_module

from wrap.workers.mechanisms.mechanism import Mechanism

for _module in pkgutil.iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")


#: The mechanisms of all modules here, by name.
_MECHANISMS = {
    each.name: each
    for kind in Mechanism.__subclasses__()
    for each in (kind, *kind.__subclasses__())
}


def kind_of(name: str) -> type[Mechanism]:
    """Return the class of the mechanism `name`. Raises ValueError if there is none."""
    if name not in _MECHANISMS:
        raise ValueError(f"mechanism {name!r} is none of {', '.join(_MECHANISMS)}")
    return _MECHANISMS[name]


def mechanism_of(
    name: str, slots: int, environment: Mapping[str, str], unforked: Collection[int] = ()
) -> Mechanism:
    """Return the mechanism `name` for a wrap with so many slots, which are its worker processes.

    Workers of the slots `unforked` cannot be forked with their functions.

    Raises ValueError if there is no such mechanism, or if a setting in `environment` is invalid.
    """
    return kind_of(name)(slots, environment, unforked)
