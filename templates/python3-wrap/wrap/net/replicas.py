"""The addresses of another wrap's replicas, as the gateway reports them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

from wrap.core.errors import TaskError
from wrap.core.replicas import KNOWN_S, KnownReplicas


class Replicas(KnownReplicas):
    """The known replicas of a wrap, and the requests for more.

    Args:
        ask: returns the address of a replica; None if the wrap accepts no messages.
        reach: connects to an address. Raises OSError or ValueError if that fails.
        start: calls a function in a thread.
    """

    def __init__(
        self,
        ask: Callable[[], str | None],
        reach: Callable[[str], None],
        start: Callable[[Callable[[], None]], object],
    ) -> None:
        super().__init__()
        self._ask = ask
        self._reach = reach
        self._start = start
        self._asking = threading.Lock()
        #: The replica that the gateway named last.
        self._named = ""

    def of(self, execution: int, within_s: float = KNOWN_S) -> str | None:
        """Return the replica for an execution, or None; it is the same as long as it exists.

        An answer of the gateway that is older than `within_s` is not used.
        """
        self.known(within_s=within_s)
        return super().of(execution)

    def known(self, but: str = "", within_s: float = KNOWN_S) -> tuple[str, ...]:
        """Return the known replicas that are not ending, without `but`.

        If there are any, no caller waits for the gateway: it may name a replica that still starts.
        """
        is_due = self.is_due(time.monotonic(), within_s)
        if is_due and self._asking.acquire(blocking=not self.may_continue_meanwhile):
            if self.staying(but):
                try:
                    self._start(partial(self._look, within_s))
                except RuntimeError:  # no thread could be started
                    self._asking.release()
            else:
                self._look(within_s)
        return self.staying(but)

    def _look(self, within_s: float) -> None:
        """Ask the gateway if no other thread has asked."""
        try:
            if self.is_due(time.monotonic(), within_s):
                self._learn()
        finally:
            self._asking.release()

    def _learn(self) -> None:
        self.forget_ended(time.monotonic())
        try:
            address = self._found()
        except (OSError, ValueError, TaskError) as error:
            silent = self._named if isinstance(error, TimeoutError) else ""
            # A replica of another build closes the connection when the proof is wrong.
            proves_nothing = isinstance(error, ConnectionError | ValueError)
            is_stranger = proves_nothing and not isinstance(error, ConnectionRefusedError)
            self.failed(time.monotonic(), isinstance(error, TaskError), silent, is_stranger)
            print(f"no address of a wrap: {error}")
        else:
            self.answered(time.monotonic(), address)

    def _found(self) -> str | None:
        """Return the replica that the gateway names, once reached; None if `ask` returns None.

        If a replica refuses the connection it may have ended: the gateway is asked once more.
        """
        address = self._ask()
        try:
            self._reach_new(address)
        except ConnectionError:
            named_again = self._ask()
            if named_again == address:
                raise
            self._reach_new(named_again)
            return named_again
        return address

    def _reach_new(self, address: str | None) -> None:
        if address is not None and self.is_new(address):
            self._named = address
            self._reach(address)

    def mark_ending(self, address: str) -> None:
        self.ends(time.monotonic(), address)
