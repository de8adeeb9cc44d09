"""Notifies the other wraps of an execution of a wrap's new address, or of another attempt."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from wrap.cluster.peers import AGAIN, MOVED
from wrap.core.participants import NoticeRounds, Participants
from wrap.core.program import Component
from wrap.core.retry import ANOTHER, REPLACEMENT, Search
from wrap.net.direct import Direct
from wrap.net.gateway_client import OK
from wrap.net.peer_connection import Message

if TYPE_CHECKING:
    from wrap.dispatch.execution import Execution

#: The statuses of an execution that a wrap does not have, or whose tasks there have all ended.
UNKNOWN, ENDED = 404, 410
#: The timeout of the answer to a notice, and the pause before it is repeated, in seconds.
_ANSWER_S, _PAUSE_S = 2.0, 0.05


class Notices:
    """The coordinator's notices. Its threads wait for the answers."""

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

    def notify_address(self, names: Iterable[str], name: str) -> dict[str, set[int]]:
        """Notify wraps of the address of wrap `name`; return wrap -> the tasks it has.

        They send their outputs to that address again. The wrap itself drops its execution.
        """
        number = self._execution.ident.number
        return self._notify(names, Message(MOVED, [number, name, self._routes[name]])).objects_at

    def notify_attempt(self, names: Iterable[str], component: Component) -> dict[str, set[int]]:
        """Notify wraps of the current attempt of a component; return wrap -> the tasks it has."""
        attempt = self._participants.attempt_of(component)
        fields = [self._execution.ident.number, min(component), attempt]
        rounds = self._notify(names, Message(AGAIN, fields))
        for each in rounds.running:
            self._participants.attempts.record_notified(each, component, attempt)
        return rounds.objects_at

    def _notify(self, names: Iterable[str], message: Message) -> NoticeRounds:
        rounds = NoticeRounds(names)
        while not rounds.is_over:
            addresses = {other: self._routes[other] for other in rounds.unconfirmed}
            answers = self._direct.pool.ask_all(addresses, message, _ANSWER_S)
            known = dict[str, list[int] | None]()
            for other, answer in answers.items():
                status, *here = answer.fields
                if status in (OK, ENDED):
                    known[other] = here[0] if status == OK else None
            rounds.record_answers(known)
            if self._execution.over:
                break
            if not rounds.is_over:
                time.sleep(_PAUSE_S)
        return rounds


def is_reachable(direct: Direct, address: str) -> bool:
    try:
        direct.pool.reach(address)
    except (OSError, ValueError):
        return False
    return True


def other_replica(
    direct: Direct, name: str, ending: str, number: int, is_wanted: Callable[[], bool]
) -> str | None:
    """Return another replica than one that is shutting down; None if none is soon found."""
    replicas = direct.replicas(name)
    replicas.mark_ending(ending)

    def look(within_s: float) -> str | None:
        others = replicas.known(but=ending, within_s=within_s)
        return others[number % len(others)] if others else None

    return _search(ANOTHER, look, is_wanted)


def replacement_replica(
    direct: Direct, name: str, lost: str, number: int, is_wanted: Callable[[], bool]
) -> str | None:
    """Return a replica to replace a lost one; None if none is found in time."""
    replicas = direct.replicas(name)
    replicas.forget(lost)
    return _search(REPLACEMENT, lambda within_s: replicas.of(number, within_s), is_wanted)


def _search(
    search: Search, look: Callable[[float], str | None], is_wanted: Callable[[], bool]
) -> str | None:
    looks = 0
    while looks < search.looks and is_wanted():
        if address := look(search.pause_s):
            return address
        looks += 1
        time.sleep(search.pause_s)
    return None
