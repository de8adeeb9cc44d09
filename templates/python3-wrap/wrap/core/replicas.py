"""The replicas of another wrap that are known, and when the gateway is asked for further ones.

The gateway names any of the replicas each time it is asked.
"""

from __future__ import annotations

import math

from wrap.core.ending import replica_of

#: How long an answer of the gateway holds, in seconds: then there may be other replicas. After an
#: answer with a new replica there may be more: the gateway is asked again soon, and then twice as
#: late after each answer without any.
KNOWN_S, _MORE_S = 5.0, 0.1
#: The same if a replica gives no sign, as behind a network policy: each look costs the caller the
#: time that it takes to see that.
_SILENT_S = 60.0
#: How long a replica takes to end, in seconds: by then another replica may have its address.
_ENDS_S = 60.0


class KnownReplicas:
    """The addresses of replicas; times are in seconds of a clock.

    Attributes:
        lost: whether the gateway could not reach the wrap when it was asked last.
        is_stranger: whether the replica that the gateway named last did not prove to be of this
            build.
    """

    def __init__(self) -> None:
        self.lost = self.is_stranger = False
        self._addresses: tuple[str, ...] = ()
        #: When each replica said that it is ending.
        self._ending: dict[str, float] = {}
        self._asked = -math.inf
        self._holds_s = KNOWN_S
        self._is_silent = False

    def of(self, execution: int) -> str | None:
        """The replica for an execution, the same one as long as it is there."""
        return replica_of(execution, self._addresses, self._ending)

    def staying(self, but: str = "") -> tuple[str, ...]:
        """The replicas that are not ending, without the address `but`."""
        return tuple(each for each in self._addresses if each != but and each not in self._ending)

    def is_due(self, now: float, within_s: float) -> bool:
        """Whether the gateway is to be asked, of which no answer older than `within_s` holds."""
        holds_s = within_s
        if within_s == KNOWN_S:
            holds_s = _SILENT_S if self._is_silent else self._holds_s
        return now >= self._asked + holds_s

    @property
    def goes_on_without(self) -> bool:
        """Whether nobody waits until another thread has asked the gateway."""
        return bool(self._addresses) or self._is_silent

    def is_new(self, address: str | None) -> bool:
        """Whether a replica that the gateway names has to be reached before it is known."""
        return address is not None and address not in self._addresses

    def answered(self, now: float, address: str | None) -> None:
        """The gateway has named a replica, which was reached; None if it takes no messages."""
        if address is not None and self.is_new(address):
            self._addresses = tuple(sorted((*self._addresses, address)))
            self._holds_s = _MORE_S
        elif self._addresses and self._ending.keys() >= set(self._addresses):
            self._holds_s = _MORE_S
        else:
            self._holds_s = min(KNOWN_S, 2 * self._holds_s)
        self._asked, self.lost, self._is_silent, self.is_stranger = now, False, False, False

    def failed(
        self, now: float, is_gateway: bool, is_timeout: bool, is_stranger: bool = False
    ) -> None:
        """The gateway could not answer, if it `is_gateway`; else its replica was not reached."""
        self._asked, self._holds_s = now, KNOWN_S
        self.lost, self.is_stranger = is_gateway, is_stranger
        self._is_silent = is_timeout and not self._addresses

    def ends(self, now: float, address: str) -> None:
        """A replica is ending: others are preferred, and asked for at once."""
        if address in self._addresses and address not in self._ending:
            self._ending[address] = now
            self._asked = -math.inf

    def is_ending(self, address: str) -> bool:
        """Whether a replica has said that it is ending."""
        return address in self._ending

    def forget(self, address: str) -> None:
        """A replica has ended, or does not answer: others are asked for at once."""
        if address in self._addresses:
            self._addresses = tuple(each for each in self._addresses if each != address)
            self._ending.pop(address, None)
            self._asked = -math.inf

    def forget_ended(self, now: float) -> None:
        """Forget replicas that must have ended by now."""
        for each in [each for each, since in self._ending.items() if since < now - _ENDS_S]:
            self.forget(each)
