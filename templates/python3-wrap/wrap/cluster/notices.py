"""Tells other wraps of an execution where a lost one is now, and which attempt tasks are in."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from wrap.cluster.peers import AGAIN, MOVED
from wrap.core.participants import Participants, Standing, Telling
from wrap.core.program import Component
from wrap.core.retry import ANOTHER, REPLACEMENT, Search
from wrap.net.direct import Direct
from wrap.net.gateway_client import OK
from wrap.net.peer_connection import Message

if TYPE_CHECKING:
    from wrap.dispatch.execution import Execution

#: The status of an execution that a wrap does not know, or whose tasks there have all ended.
UNKNOWN, ENDED = 404, 410
_STANDINGS = {OK: Standing.RUNS, ENDED: Standing.ENDED}
#: How long another wrap is waited for that is told of a loss, in seconds; the pause before it is
#: told again.
_ANSWER_S, _PAUSE_S = 2.0, 0.05


class Notices:
    """What the coordinator tells; its threads wait for the answers.

    Args:
        routes: wrap -> its address.
    """

    def __init__(
        self,
        execution: Execution,
        direct: Direct,
        routes: Mapping[str, str],
        participants: Participants,
    ) -> None:
        self._execution = execution
        self._direct = direct
        self._routes = routes
        self._participants = participants

    def of_place(self, names: Iterable[str], name: str) -> dict[str, set[int]]:
        """Tell wraps where another one is now, which gets what they have for it; what each has.

        One that hears of itself keeps nothing.
        """
        number = self._execution.ident.number
        return self._told(names, Message(MOVED, [number, name, self._routes[name]])).has

    def of_attempt(self, names: Iterable[str], component: Component) -> dict[str, set[int]]:
        """Tell wraps of the attempt that some tasks are in now; what each has."""
        attempt = self._participants.attempt_of(component)
        fields = [self._execution.ident.number, min(component), attempt]
        telling = self._told(names, Message(AGAIN, fields))
        for each in telling.running:
            self._participants.told(each, component, attempt)
        return telling.has

    def _told(self, names: Iterable[str], message: Message) -> Telling:
        telling = Telling(names)
        while not telling.is_over:
            addresses = {other: self._routes[other] for other in telling.left}
            answers = self._direct.pool.ask_all(addresses, message, _ANSWER_S)
            standings = dict[str, tuple[Standing, list[int]]]()
            for other, answer in answers.items():
                status, *here = answer.fields
                standing = _STANDINGS.get(status, Standing.UNKNOWN)
                standings[other] = standing, here[0] if here else []
            telling.heard(standings)
            if self._execution.over:
                break
            if not telling.is_over:
                time.sleep(_PAUSE_S)
        return telling


def is_there(direct: Direct, address: str) -> bool:
    """Whether a wrap takes connections at an address."""
    try:
        direct.pool.reach(address)
    except (OSError, ValueError):
        return False
    return True


def replica_beside(
    direct: Direct, name: str, ending: str, number: int, is_wanted: Callable[[], bool]
) -> str | None:
    """Another replica of a wrap than one that is ending; None if none is soon found."""
    replicas = direct.replicas(name)
    replicas.ends(ending)

    def look(within_s: float) -> str | None:
        others = replicas.known(but=ending, within_s=within_s)
        return others[number % len(others)] if others else None

    return _found(ANOTHER, look, is_wanted)


def replica_after(
    direct: Direct, name: str, lost: str, number: int, is_wanted: Callable[[], bool]
) -> str | None:
    """A replica of a wrap that was lost at an address; None if none is there in time."""
    replicas = direct.replicas(name)
    replicas.forget(lost)
    return _found(REPLACEMENT, lambda within_s: replicas.of(number, within_s), is_wanted)


def _found(
    search: Search, look: Callable[[float], str | None], is_wanted: Callable[[], bool]
) -> str | None:
    looks = 0
    while looks < search.looks and is_wanted():
        if address := look(search.pause_s):
            return address
        looks += 1
        time.sleep(search.pause_s)
    return None
