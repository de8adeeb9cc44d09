"""Where the replicas of another wrap take messages, as the gateway says."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from wrap.core.ending import replica_of
from wrap.core.errors import TaskError

#: How long what the gateway said of addresses holds, in seconds: then there may be other replicas.
#: Where it has just told a new one there may be more: it is asked again soon, and then twice as
#: late each time that it tells none.
_KNOWN_S, _MORE_S = 5.0, 0.1
#: The same where one gives no sign, as behind a network policy: each look costs who looks the time
#: that it takes to see that.
_SILENT_S = 60.0
#: How long a replica takes to end, in seconds: by then another one may have its address.
_ENDS_S = 60.0


class Replicas:
    """The replicas of a wrap that are known, which share executions by their numbers.

    Parameters
    ----------
    ask
        Says where one of them is; None where they take no messages.
    reach
        Connects to one. Raises OSError or ValueError where that cannot be.

    Attributes
    ----------
    lost
        Whether the wrap, when it was last asked for, could not be reached at all.
    """

    def __init__(self, ask: Callable[[], str | None], reach: Callable[[str], None]) -> None:
        self._ask = ask
        self._reach = reach
        self._known: tuple[str, ...] = ()
        #: When each said that it is ending.
        self._ending: dict[str, float] = {}
        self._asked = -_KNOWN_S
        self._holds_s = _KNOWN_S
        self._asking = threading.Lock()
        self._silent = False
        self.lost = False

    def of(self, execution: int, within_s: float = _KNOWN_S) -> str | None:
        """The replica for an execution, the same one as long as it is there; None where none is.

        What the gateway said longer ago than `within_s` does not hold.
        """
        self.known(within_s=within_s)
        return replica_of(execution, self._known, self._ending)

    def known(self, but: str = "", within_s: float = _KNOWN_S) -> tuple[str, ...]:
        """Those that are known now and are not ending, without that one."""
        goes_on = bool(self._known) or self._silent
        if self._is_old(within_s) and self._asking.acquire(blocking=not goes_on):
            try:
                if self._is_old(within_s):
                    self._forget_ended()
                    self._learn(self._ask())
                    self.lost = self._silent = False
            except (OSError, ValueError, TaskError) as error:
                self.lost = isinstance(error, TaskError)
                self._silent = isinstance(error, TimeoutError) and not self._known
                self._holds_s = _KNOWN_S
                print(f"no address of a wrap: {error}")
            finally:
                self._asked = time.monotonic()
                self._asking.release()
        return tuple(each for each in self._known if each != but and each not in self._ending)

    def _is_old(self, within_s: float) -> bool:
        holds_s = within_s
        if within_s == _KNOWN_S:
            holds_s = _SILENT_S if self._silent else self._holds_s
        return time.monotonic() >= self._asked + holds_s

    def _learn(self, told: str | None) -> None:
        if told is not None and told not in self._known:
            self._reach(told)
            self._known = tuple(sorted((*self._known, told)))
            self._holds_s = _MORE_S
        elif self._known and self._ending.keys() >= set(self._known):
            self._holds_s = _MORE_S
        else:
            self._holds_s = min(_KNOWN_S, 2 * self._holds_s)

    def _forget_ended(self) -> None:
        before = time.monotonic() - _ENDS_S
        for each in [each for each, since in self._ending.items() if since < before]:
            self.forget(each)

    def ends(self, address: str) -> None:
        """It is ending: others are preferred, and asked for at once."""
        if address in self._known and address not in self._ending:
            self._ending[address] = time.monotonic()
            self._asked = -_KNOWN_S

    def is_ending(self, address: str) -> bool:
        """Whether that replica has said that it is ending."""
        return address in self._ending

    def forget(self, address: str) -> None:
        """It has ended, or does not answer: it is asked anew where there are others."""
        if address in self._known:
            self._known = tuple(each for each in self._known if each != address)
            self._ending.pop(address, None)
            self._asked = -_KNOWN_S
