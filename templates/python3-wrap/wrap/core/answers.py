"""Which connection gets the answer of each execution of another wrap, also after a reconnection.

A coordinator whose connection broke reconnects and asks once more. Until then the execution
continues, and an answer that could not be sent is kept.
"""

from __future__ import annotations

from typing import Generic, TypeVar

#: How long a coordinator has to reconnect, in seconds: twice as long as a handshake may take
#: (`wrap.net.handshake`).
RENEWAL_S = 2.0

#: An execution that runs here; a connection; an answer.
Execution = TypeVar("Execution")
Connection = TypeVar("Connection")
Answer = TypeVar("Answer")


class Answers(Generic[Execution, Connection, Answer]):
    """The executions whose coordinators await an answer, and answers that could not be sent."""

    def __init__(self) -> None:
        self._awaited_by: dict[Execution, Connection] = {}
        self._unsent: dict[int, Answer] = {}

    def __bool__(self) -> bool:
        """Return whether an answer has still to be sent."""
        return bool(self._awaited_by or self._unsent)

    @property
    def executions(self) -> list[Execution]:
        return list(self._awaited_by)

    def begin(self, execution: Execution, connection: Connection) -> None:
        """Record that a coordinator awaits the answer of an execution over a connection."""
        self._awaited_by[execution] = connection

    def renew(self, execution: Execution | None, connection: Connection) -> bool:
        """Record a reconnection; return whether the execution still runs and will be answered."""
        if execution is None or execution not in self._awaited_by:
            return False
        self._awaited_by[execution] = connection
        return True

    def lost(self, connection: Connection) -> list[Execution]:
        """Return the executions whose answers a lost connection was to get."""
        awaited = list(self._awaited_by.items())
        return [execution for execution, by in awaited if by is connection]

    def cancelled_in_s(self, is_orderly: bool) -> float:
        """Return the seconds until such an execution `is_unawaited`, without a reconnection."""
        return 0.0 if is_orderly else RENEWAL_S

    def is_unawaited(self, execution: Execution, connection: Connection) -> bool:
        """Return whether no coordinator has reconnected since this connection was lost."""
        return self._awaited_by.get(execution) is connection

    def connection_of(self, execution: Execution) -> Connection:
        return self._awaited_by[execution]

    def end(self, execution: Execution) -> None:
        del self._awaited_by[execution]

    def keep(self, number: int, answer: Answer) -> None:
        """Keep an answer that could not be sent, for `RENEWAL_S`."""
        self._unsent[number] = answer

    def take(self, number: int) -> Answer | None:
        return self._unsent.pop(number, None)

    def forget(self, number: int) -> None:
        """Drop the kept answer of an execution, because no coordinator has asked for it."""
        self._unsent.pop(number, None)
