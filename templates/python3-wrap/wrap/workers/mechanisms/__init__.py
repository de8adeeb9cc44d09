"""The mechanisms by which worker processes are made, a module each; nothing else names them."""

from __future__ import annotations

import pkgutil
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
