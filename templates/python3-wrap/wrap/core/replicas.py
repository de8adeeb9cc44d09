"""The known replicas of another wrap, and when the gateway is asked for more.

The gateway may name any replica each time it is asked.
"""

from __future__ import annotations

import math

from wrap.core.ending import replica_of

#: Time to live of the gateway's answer, in seconds. After a new replica there may be more: the next
#: request comes soon, then after twice the time for each answer without a new replica.
KNOWN_S, _MORE_S = 5.0, 0.1
#: The same if a replica does not respond, as behind a network policy: each try costs the caller the
#: time of a timeout.
_SILENT_S = 60.0
#: How long a replica takes to shut down, in seconds: then another replica may have its address.
_ENDS_S = 60.0


class KnownReplicas:
    """The addresses of replicas; times are in seconds of a clock.

    Attributes:
        lost: whether the gateway could not reach the wrap at the last request.
        is_stranger: whether the replica that answered the gateway last did not prove to be of this
            build. Without an address it is not: all replicas of this build have one.
    """

    def __init__(self) -> None:
        self.lost = self.is_stranger = False
        self._addresses: tuple[str, ...] = ()
        #: Replica -> when it announced its shutdown.
        self._ending: dict[str, float] = {}
        self._asked = -math.inf
        self._holds_s = KNOWN_S
        self._is_silent = False
        #: The replica that did not respond the last time that one did not.
        self._silent = ""

    def of(self, execution: int) -> str | None:
        """Return the replica for an execution, the same as long as it exists."""
        return replica_of(execution, self._addresses, self._ending)

    def staying(self, but: str = "") -> tuple[str, ...]:
        """Return the replicas that are not shutting down, without the address `but`."""
        return tuple(each for each in self._addresses if each != but and each not in self._ending)

    def is_due(self, now: float, within_s: float) -> bool:
        """Return whether to ask the gateway, if its last answer is older than `within_s`."""
        holds_s = within_s
        if within_s == KNOWN_S:
            holds_s = _SILENT_S if self._is_silent else self._holds_s
        return now >= self._asked + holds_s

    @property
    def may_continue_meanwhile(self) -> bool:
        """Whether callers continue while another thread asks the gateway."""
        return bool(self._addresses) or self._is_silent

    def is_new(self, address: str | None) -> bool:
        """Return whether a named replica has to be reached before it counts as known."""
        return address is not None and address not in self._addresses

    def answered(self, now: float, address: str | None) -> None:
        """Record the gateway's answer: a replica that was reached, None if it takes no messages."""
        if address is not None and self.is_new(address):
            self._silent = "" if address == self._silent else self._silent
            self._addresses = tuple(sorted((*self._addresses, address)))
            self._holds_s = _MORE_S
        elif self._addresses and self._ending.keys() >= set(self._addresses):
            self._holds_s = _MORE_S
        else:
            self._holds_s = min(KNOWN_S, 2 * self._holds_s)
        self._asked, self.lost, self._is_silent = now, False, False
        self.is_stranger = address is None

    def failed(
        self, now: float, is_gateway: bool, silent: str = "", is_stranger: bool = False
    ) -> None:
        """Record a failure: of the gateway if `is_gateway`, else of reaching the named replica.

        The replica is `silent` if it did not respond. One that has ended is not named again, so a
        replica that stays silent cannot be reached from here. Then no replica is used directly: its
        loss could be repaired only by the replicas that cannot be reached.
        """
        self._asked, self._holds_s = now, KNOWN_S
        self.lost, self.is_stranger = is_gateway, is_stranger
        if silent and silent == self._silent:
            self._addresses = ()
            self._ending.clear()
        self._silent = silent or self._silent
        self._is_silent = bool(silent) and not self._addresses

    def ends(self, now: float, address: str) -> None:
        """Record that a replica is shutting down: others are preferred, and asked for at once."""
        if address in self._addresses and address not in self._ending:
            self._ending[address] = now
            self._asked = -math.inf

    def is_ending(self, address: str) -> bool:
        return address in self._ending

    def forget(self, address: str) -> None:
        """Forget a replica that has ended or does not answer; ask for others at once."""
        if address in self._addresses:
            self._addresses = tuple(each for each in self._addresses if each != address)
            self._ending.pop(address, None)
            self._asked = -math.inf

    def forget_ended(self, now: float) -> None:
        """Forget replicas that must have ended by now."""
        for each in [each for each, since in self._ending.items() if since < now - _ENDS_S]:
            self.forget(each)
