"""Which connection gets the answer of each execution of another wrap, and what if it breaks.

A coordinator whose connection broke connects anew, and asks once more. Until then the execution
goes on, and an answer that could not be sent is kept.
"""

from __future__ import annotations

from typing import Generic, TypeVar

#: How long a coordinator has to connect anew, in seconds: twice as long as a handshake may take
#: (`wrap.net.handshake`).
RENEWAL_S = 2.0

#: An execution that runs here; a connection; an answer.
Execution = TypeVar("Execution")
Connection = TypeVar("Connection")
Answer = TypeVar("Answer")


class Answers(Generic[Execution, Connection, Answer]):
    """The executions whose coordinators wait for an answer, and answers that could not be sent."""

    def __init__(self) -> None:
        self._awaited_by: dict[Execution, Connection] = {}
        self._unsent: dict[int, Answer] = {}

    def __bool__(self) -> bool:
        """Whether an answer has still to be sent."""
        return bool(self._awaited_by or self._unsent)

    @property
    def executions(self) -> list[Execution]:
        """The executions that have not been answered."""
        return list(self._awaited_by)

    def begin(self, execution: Execution, connection: Connection) -> None:
        """A coordinator waits for the answer of an execution over a connection."""
        self._awaited_by[execution] = connection

    def renew(self, execution: Execution | None, connection: Connection) -> bool:
        """A coordinator has connected anew; whether the execution goes on, and is answered so."""
        if execution is None or execution not in self._awaited_by:
            return False
        self._awaited_by[execution] = connection
        return True

    def lost(self, connection: Connection) -> list[Execution]:
        """A connection has ended; the executions whose answers it was to get."""
        awaited = list(self._awaited_by.items())
        return [execution for execution, by in awaited if by is connection]

    def cancelled_in_s(self, is_orderly: bool) -> float:
        """In how many seconds such an execution `is_unawaited`, if nobody connects anew."""
        return 0.0 if is_orderly else RENEWAL_S

    def is_unawaited(self, execution: Execution, connection: Connection) -> bool:
        """Whether nobody has connected anew for an execution since its connection has ended."""
        return self._awaited_by.get(execution) is connection

    def connection_of(self, execution: Execution) -> Connection:
        """The connection that gets the answer of an execution."""
        return self._awaited_by[execution]

    def end(self, execution: Execution) -> None:
        """An execution has been answered, or its answer is kept."""
        del self._awaited_by[execution]

    def keep(self, number: int, answer: Answer) -> None:
        """An answer could not be sent: it is kept for `RENEWAL_S`."""
        self._unsent[number] = answer

    def take(self, number: int) -> Answer | None:
        """The answer that was kept for an execution, if one was, which is kept no longer."""
        return self._unsent.pop(number, None)

    def forget(self, number: int) -> None:
        """Nobody has asked for the answer that was kept for an execution."""
        self._unsent.pop(number, None)
