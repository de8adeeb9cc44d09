"""Notifies the other wraps of an execution of a wrap's new address, or of another attempt."""

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

#: The statuses of an execution that a wrap does not have, or whose tasks there have all ended.
UNKNOWN, ENDED = 404, 410
_STANDINGS = {OK: Standing.RUNS, ENDED: Standing.ENDED}
#: The timeout of the answer to a notice, and the pause before it is repeated, in seconds.
_ANSWER_S, _PAUSE_S = 2.0, 0.05


class Notices:
    """The coordinator's notices. Its threads wait for the answers.

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
        """Notify wraps of the address of wrap `name`; return wrap -> the tasks it has.

        They send their outputs to that address again. The wrap itself drops its execution.
        """
        number = self._execution.ident.number
        return self._told(names, Message(MOVED, [number, name, self._routes[name]])).has

    def of_attempt(self, names: Iterable[str], component: Component) -> dict[str, set[int]]:
        """Notify wraps of the current attempt of a component; return wrap -> the tasks it has."""
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
    """Return whether a wrap accepts connections at an address."""
    try:
        direct.pool.reach(address)
    except (OSError, ValueError):
        return False
    return True


def replica_beside(
    direct: Direct, name: str, ending: str, number: int, is_wanted: Callable[[], bool]
) -> str | None:
    """Return another replica than one that is shutting down; None if none is soon found."""
    replicas = direct.replicas(name)
    replicas.ends(ending)

    def look(within_s: float) -> str | None:
        others = replicas.known(but=ending, within_s=within_s)
        return others[number % len(others)] if others else None

    return _found(ANOTHER, look, is_wanted)


def replica_after(
    direct: Direct, name: str, lost: str, number: int, is_wanted: Callable[[], bool]
) -> str | None:
    """Return a replica to replace a lost one; None if none is found in time."""
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
