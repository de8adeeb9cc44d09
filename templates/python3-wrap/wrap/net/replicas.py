"""Where the replicas of another wrap take messages, as the gateway says."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

from wrap.core.errors import TaskError
from wrap.core.replicas import KNOWN_S, KnownReplicas


class Replicas:
    """The replicas of a wrap that are known, which share executions by their numbers.

    When the gateway is asked is in `wrap.core.replicas`.

    Args:
        ask: says where one of them is; None where they take no messages.
        reach: connects to one. Raises OSError or ValueError where that cannot be.
        start: has a thread call a function.
    """

    def __init__(
        self,
        ask: Callable[[], str | None],
        reach: Callable[[str], None],
        start: Callable[[Callable[[], None]], object],
    ) -> None:
        self._ask = ask
        self._reach = reach
        self._start = start
        self._rules = KnownReplicas()
        self._asking = threading.Lock()

    @property
    def lost(self) -> bool:
        """Whether the wrap, when it was last asked for, could not be reached at all."""
        return self._rules.lost

    @property
    def is_stranger(self) -> bool:
        """Whether the replica that the gateway named last did not prove to be of this build."""
        return self._rules.is_stranger

    def of(self, execution: int, within_s: float = KNOWN_S) -> str | None:
        """The replica for an execution, the same one as long as it is there; None where none is.

        What the gateway said longer ago than `within_s` does not hold.
        """
        self.known(within_s=within_s)
        return self._rules.of(execution)

    def known(self, but: str = "", within_s: float = KNOWN_S) -> tuple[str, ...]:
        """Those that are known now and are not ending, without that one.

        If there are any, no caller waits for the gateway: it may name a replica that still starts.
        """
        rules = self._rules
        is_due = rules.is_due(time.monotonic(), within_s)
        if is_due and self._asking.acquire(blocking=not rules.may_continue_meanwhile):
            if rules.staying(but):
                try:
                    self._start(partial(self._look, within_s))
                except RuntimeError:  # no thread could be had
                    self._asking.release()
            else:
                self._look(within_s)
        return rules.staying(but)

    def _look(self, within_s: float) -> None:
        """Ask the gateway if no other thread has asked."""
        try:
            if self._rules.is_due(time.monotonic(), within_s):
                self._learn()
        finally:
            self._asking.release()

    def _learn(self) -> None:
        rules = self._rules
        rules.forget_ended(time.monotonic())
        try:
            address = self._found()
        except (OSError, ValueError, TaskError) as error:
            is_gateway, is_timeout = (isinstance(error, e) for e in (TaskError, TimeoutError))
            # It ends the connection as soon as it does not get the proof that it waits for.
            proves_nothing = isinstance(error, ConnectionError | ValueError)
            is_stranger = proves_nothing and not isinstance(error, ConnectionRefusedError)
            rules.failed(time.monotonic(), is_gateway, is_timeout, is_stranger)
            print(f"no address of a wrap: {error}")
        else:
            rules.answered(time.monotonic(), address)

    def _found(self) -> str | None:
        """The replica that the gateway names, which has been reached; None as `ask` has it.

        A replica that refuses may have ended since: the gateway is asked once more.
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
        if address is not None and self._rules.is_new(address):
            self._reach(address)

    def mark_ending(self, address: str) -> None:
        """It is ending: others are preferred, and asked for at once."""
        self._rules.mark_ending(time.monotonic(), address)

    def is_ending(self, address: str) -> bool:
        """Whether that replica has said that it is ending."""
        return self._rules.is_ending(address)

    def forget(self, address: str) -> None:
        """It has ended, or does not answer: it is asked anew where there are others."""
        self._rules.forget(address)
