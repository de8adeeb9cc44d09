"""The mechanisms: how further processes come to be, one file each; the rest knows none by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from wrap.mechanisms.fork import Fork
from wrap.mechanisms.pool import Pool
from wrap.process import Process
from wrap.spawner import Spawner


class Mechanism(Protocol):
    """How further processes come to be."""

    #: How the start of a process is called in a timeline.
    kind: str

    @property
    def lasting(self) -> int:
        """How many processes, besides the server, keep memory from one request to the next."""

    def start(self, spawner: Spawner) -> None:
        """Get processes from `spawner` from now on. Raises OSError where there are none."""

    def take(self, slot: int, deadline: float) -> Process:
        """A process for the further process number `slot` of a stage.

        Raises
        ------
        TaskError
            ``timeout``: none was free before `deadline` (seconds of the monotonic clock).
        """

    def give(self, slot: int, process: Process, sound: bool) -> None:
        """Be done with it; `sound` if it has answered all that it was asked."""


_MECHANISMS: dict[str, Callable[[int, Mapping[str, str]], Mechanism]] = {
    "fork": Fork,
    "pool": Pool,
}


def mechanism_of(name: str, slots: int, environment: Mapping[str, str]) -> Mechanism:
    """The mechanism called `name` for so many slots, further processes of the widest stage.

    Raises ValueError where there is none, or where a setting of it in `environment` is none.
    """
    if name not in _MECHANISMS:
        raise ValueError(f"mechanism {name!r} is none of {', '.join(_MECHANISMS)}")
    return _MECHANISMS[name](slots, environment)
