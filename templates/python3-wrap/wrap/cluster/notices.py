"""Tells other wraps of an execution where a lost one is now, and which attempt tasks are in."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from wrap.cluster.peers import AGAIN, MOVED
from wrap.core.program import Component
from wrap.core.recovery import Tally
from wrap.net.direct import Direct
from wrap.net.gateway_client import OK
from wrap.net.peer_connection import Message

if TYPE_CHECKING:
    from wrap.dispatch.execution import Execution

#: What a wrap answers that does not know an execution, and that has ended all its tasks in it.
UNKNOWN, ENDED = 404, 410
#: How long to wait before the gateway is asked again where a wrap is, in seconds.
PAUSE_S = 0.05
#: How long another wrap is waited for that is told of a loss, in seconds; and how often.
_ANSWER_S = 2.0
_TOLD = 3
#: How often the gateway is asked for another replica than one that is ending, and the pause before
#: it is asked again, in seconds.
_LOOKS, _LOOK_S = 10, 0.02


class Notices:
    """What the coordinator tells; its threads wait for the answers.

    Parameters
    ----------
    routes
        Wrap -> its address.
    tally
        Counts the attempts, and which wrap knows of which.
    """

    def __init__(
        self, execution: Execution, direct: Direct, routes: Mapping[str, str], tally: Tally
    ) -> None:
        self._execution = execution
        self._direct = direct
        self._routes = routes
        self._tally = tally

    def of_place(self, names: Iterable[str], name: str) -> dict[str, set[int]]:
        """Tell wraps where another one is now, which gets what they have for it; what each has.

        One that hears of itself keeps nothing.
        """
        number = self._execution.ident.number
        return self._told(names, Message(MOVED, [number, name, self._routes[name]]))[0]

    def of_attempt(self, names: Iterable[str], component: Component) -> dict[str, set[int]]:
        """Tell wraps of the attempt that some tasks are in now; what each has."""
        attempt = self._tally.now[component]
        fields = [self._execution.ident.number, min(component), attempt]
        has, known = self._told(names, Message(AGAIN, fields))
        for each in known:
            self._tally.told(each, component, attempt)
        return has

    def _told(self, names: Iterable[str], message: Message) -> tuple[dict[str, set[int]], set[str]]:
        """Tell wraps something; what each has, and which of them know the execution.

        Who does not say what it has may have nothing yet; who has ended all its tasks is not among
        them.
        """
        has: dict[str, set[int]] = {other: set() for other in names}
        left, known = set(has), set[str]()
        for _ in range(_TOLD):
            addresses = {other: self._routes[other] for other in left}
            answers = self._direct.lines.ask_all(addresses, message, _ANSWER_S)
            for other, answer in answers.items():
                if answer.fields[0] == UNKNOWN:
                    continue  # it may be about to begin, with the attempt or the place before
                left.remove(other)
                if answer.fields[0] == OK:
                    has[other] = set(answer.fields[1])
                    known.add(other)
                elif answer.fields[0] == ENDED:
                    del has[other]
            if not left or self._execution.over:
                break
            time.sleep(PAUSE_S)
        return has, known


def is_there(direct: Direct, address: str) -> bool:
    """Whether a wrap takes connections at an address."""
    try:
        direct.lines.reach(address)
    except (OSError, ValueError):
        return False
    return True


def other_than(direct: Direct, name: str, ending: str, number: int) -> str | None:
    """Another replica of a wrap than one that is ending; None where none is soon to be found.

    Each time that the gateway is asked it may name any of them.
    """
    replicas = direct.replicas(name)
    replicas.ends(ending)
    for _ in range(_LOOKS):
        if others := replicas.known(but=ending, within_s=_LOOK_S):
            return others[number % len(others)]
        time.sleep(_LOOK_S)
    return None


def address_of(
    direct: Direct, name: str, lost: str, number: int, is_wanted: Callable[[], bool]
) -> str | None:
    """Where a wrap is that was lost at an address; None where it is not there in time."""
    replicas = direct.replicas(name)
    replicas.forget(lost)
    while is_wanted():
        if address := replicas.of(number, PAUSE_S):
            return address
        time.sleep(PAUSE_S)
    return None
