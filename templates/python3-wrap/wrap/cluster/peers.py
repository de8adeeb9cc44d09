"""The protocol between wraps that take part in the same execution.

The coordinator, which has the request, asks each other wrap to begin, once. From then on every wrap
sends outputs directly to the wraps that wait for them. It answers the coordinator after all its
tasks. Duplicates change nothing, so whatever may be lost is sent again.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from wrap.config.redaction import redacted
from wrap.core.executions import DistributedExecutions
from wrap.core.retry import REPORTS, STRAIGHT, sends_to
from wrap.core.sharing import Sharing, is_needed
from wrap.core.streams import StreamId
from wrap.core.wrap_spec import Wrap
from wrap.dispatch.backpressure import Pressure
from wrap.dispatch.storing import stored
from wrap.event_loop.loop import Loop, Timer
from wrap.net.direct import Direct, is_refused
from wrap.net.framing import Frame, Unsent
from wrap.net.peer_connection import Message, Received
from wrap.net.transport import GRACE_S
from wrap.pipes.broker import STREAM
from wrap.pipes.frames import lost
from wrap.values.budget import HELD_FROM
from wrap.values.shared_memory import Shared
from wrap.values.value import Object, received

if TYPE_CHECKING:
    from wrap.core.errors import TaskError
    from wrap.core.program import Key
    from wrap.dispatch.execution import Execution
    from wrap.net.messages import Result

#: The kinds of messages: take part in an execution; outputs; a wrap has moved to another address;
#: streams broke; the tasks that they connect are in another attempt.
BEGIN, OBJECTS, MOVED, BROKE, AGAIN = "begin", "objects", "moved", "broke", "again"
#: The pause before a stream to a missing wrap, or refused objects, are retried, in seconds.
_PAUSE_S = 0.05

#: Task -> its object; None if the receiver only needs to know that the task has ended.
Given = Mapping[int, Object | None]


class PeerProtocol:
    """The executions on this replica, at `address`, in which other wraps take part."""

    def __init__(self, wrap: Wrap, direct: Direct, loop: Loop, address: str) -> None:
        self.wrap = wrap
        self.direct = direct
        self.address = address
        #: Decides when tasks with outputs for other wraps may begin.
        self.pressure = Pressure(loop)
        self.loop = loop
        self._executions: DistributedExecutions[Execution, Given] = DistributedExecutions()
        #: Execution -> the timer that drops early objects if it has not begun.
        self._forgetting: dict[int, Timer] = {}
        self._lock = threading.Lock()

    @property
    def busy(self) -> bool:
        """Whether an execution runs, or objects wait for an execution that has not begun."""
        return self._executions.in_hand

    def routes(self, execution: int) -> dict[str, str] | None:
        """Return the addresses of all wraps for an execution; None if a wrap has none.

        A lost wrap has an empty address if there may be another attempt.
        """
        found = {self.wrap.name: self.address}
        for name in self.wrap.remotes:
            replicas = self.direct.replicas(name)
            address = replicas.of(execution)
            if address is None and not (replicas.lost and self.wrap.attempts > 1):
                return None
            found[name] = address or ""
        return found

    def connect(self, name: str, stream: StreamId, is_wanted: Callable[[], bool]) -> socket.socket:
        """Return a connection to another wrap that carries a stream. Raises TaskError.

        Retries while the wrap may soon run elsewhere: if attempts are left or it is shutting down.
        """
        while True:
            execution = self.get(stream.execution)
            peers = None if execution is None else execution.peers
            if peers is None or not is_wanted():
                raise lost("the execution is over")
            try:
                return self.direct.pool.stream(peers.routes[name], Message(STREAM, stream))
            except (OSError, ValueError) as error:
                ends = self.direct.replicas(name).is_ending(peers.routes[name])
                if self.wrap.attempts == 1 and not ends:
                    raise lost(f"no stream to wrap {name}: {error}") from error
            sleep(_PAUSE_S)

    def get(self, number: int) -> Execution | None:
        return self._executions.get(number)

    def expects(self, number: int) -> bool:
        """Return whether messages of an execution are accepted: it runs, will begin, or is done."""
        with self._lock:
            return self._executions.expects(number)

    def has_ended(self, number: int) -> bool:
        return self._executions.has_ended(number)

    def add(self, execution: Execution) -> None:
        """Register an execution that begins, and give it the objects that arrived early."""
        number = execution.ident.number
        with self._lock:
            early = self._executions.begin(number, execution)
            timer = self._forgetting.pop(number, None)
        if timer is not None:
            timer.cancel()
        for given in early:
            execution.arrived(given)

    def remove(self, execution: Execution) -> None:
        number = execution.ident.number
        with self._lock:
            self._executions.end(number, execution, execution.run.program.is_complete)

    def begin_again(self, number: int) -> Execution | None:
        """Unregister an execution that will begin again, and return it; later messages are kept."""
        with self._lock:
            return self._executions.begin_again(number)

    def deliver(self, number: int, given: Given) -> None:
        """Give objects to an execution, or keep them until it begins."""
        with self._lock:
            execution = self._executions.get(number)
            if execution is None:
                self._keep(number, given)
                return
        execution.arrived(given)

    def _keep(self, number: int, given: Given) -> None:
        seconds = self._executions.keep(number, given)
        if seconds is not None:
            forget = partial(self._forget, number)
            self._forgetting[number] = self.loop.call_at(monotonic() + seconds, forget)

    def _forget(self, number: int) -> None:
        with self._lock:
            self._executions.forget(number)
            self._forgetting.pop(number, None)


class Peers:
    """The other wraps of an execution, from the side of a participant.

    Args:
        coordinator: the wrap that has the request.
        routes: wrap -> its address.
        wanted: tasks whose objects the coordinator awaits, besides the inputs of its own tasks.
    """

    #: Seconds to wait for others after the deadline: their errors name the overdue task.
    grace_s = 2 * GRACE_S

    def __init__(
        self,
        protocol: PeerProtocol,
        coordinator: str,
        routes: dict[str, str],
        wanted: frozenset[int],
    ) -> None:
        self.protocol = protocol
        self.coordinator = coordinator
        self.routes = routes
        self.wanted = wanted
        self._wrap = protocol.wrap
        own, takers = protocol.wrap.name, protocol.wrap.takers
        #: Whether the object of another wrap's task is needed here, or only its end.
        self.needs = partial(is_needed, takers, own, frozenset())
        self.sharing = Sharing(takers, own, coordinator, wanted)
        #: The number of writes to the store whose objects are sent afterwards.
        self._storing = 0
        #: A key for each message with objects on their way -> the receiving wrap.
        self._sending: dict[object, str] = {}

    def is_waiting(self, here: Collection[int]) -> bool:
        """Return whether outputs are still on their way to a store or to other wraps.

        They would be lost with this wrap, and the coordinator does not recover ended wraps.
        """
        return self._storing > 0 or bool(self._sending)

    def timeout_error(self) -> TaskError | None:
        """Return the error about overdue tasks in other wraps, if known."""
        return None

    def loss_error(self) -> TaskError | None:
        """Return the error about other wraps that ended without a replacement, if known."""
        return None

    def begin(self, execution: Execution) -> None:
        """Begin the execution here."""

    def streams_broke(
        self, execution: Execution, task: int, attempt: int, error: TaskError
    ) -> None:
        """Report to the coordinator that the streams of a task broke, or that it was lost."""
        fields = [execution.ident.number, task, attempt, error.as_dict(redacted)]
        self._report(Message(BROKE, fields), REPORTS)

    def _report(self, message: Message, tries: int) -> None:
        def on_answer(answer: Received | None) -> None:
            if answer is None and tries > 1:
                self._report(message, tries - 1)

        self.protocol.direct.pool.ask(self.routes[self.coordinator], message, on_answer)

    def close(self) -> None:
        """End the execution here."""

    def send_outputs(self, execution: Execution, results: Iterable[Result], last: bool) -> None:
        """Send outputs to the wraps that wait for them, after a store has them if that is the path.

        See `wrap.core.sharing`. The results keep only outputs for the answer to the coordinator.
        """
        results = list(results)
        outputs = {each.task: each.output for each in results}
        shares = self.sharing.of(outputs, last)
        for each in results:
            if each.task not in shares.in_answer:
                each.output = None
        crossing: dict[Key, Object] = {
            task: output
            for task, output in outputs.items()
            if task in shares.leaving and output is not None
        }
        given = {
            to: {task: outputs[task] if needed else None for task, needed in tasks.items()}
            for to, tasks in shares.messages.items()
        }
        size = sum(each.size for each in crossing.values())
        if size >= HELD_FROM:
            self.protocol.pressure.record_output(
                size, max(each.ended - each.started for each in results)
            )
        self._storing += 1
        stored(execution, crossing, partial(self._send_all, execution, given))

    def _send_all(self, execution: Execution, given: Mapping[str, Given]) -> None:
        self._storing -= 1
        for to, objects in given.items():
            self.send(execution, to, objects)

    def update_address(self, execution: Execution, name: str, address: str) -> list[int]:
        """Record a wrap's new address, and send its inputs again; return the tasks ended here."""
        self.routes[name] = address
        self._sending = {key: to for key, to in self._sending.items() if to != name}
        self.resend_outputs(execution, name)
        return sorted(execution.run.here)

    def resend_outputs(self, execution: Execution, to: str) -> None:
        """Send another wrap all outputs of this wrap that it waits for."""
        given: dict[int, Object | None] = {}
        for task in execution.run.here & self._wrap.tasks.keys():
            needed = self._wrap.takers[task].get(to)
            if needed is not None:
                given[task] = execution.data[task] if needed else None
        if given:
            self.send(execution, to, given)

    def send(self, execution: Execution, to: str, given: Given) -> None:
        """Send objects to another wrap, with the retries of `wrap.core.retry.sends_to`."""
        key = object()
        self._sending[key] = to
        pressure, size = self.protocol.pressure, bytes_of(given.values())
        place = self.routes[to]
        pressure.record_sending(place, size)

        def done() -> None:
            pressure.record_sent(place, size)
            execution.event(forget)

        def forget() -> None:
            self._sending.pop(key, None)

        self._send(execution.ident.number, to, given, 0, done)

    def _refused(self, number: int, to: str, given: Given, done: Callable[[], None]) -> None:
        """Retry: the receiver is shutting down. The coordinator will know where it begins."""
        if self.coordinator != self._wrap.name:
            self._send(number, to, given, STRAIGHT, done)
        elif self.protocol.get(number) is None:
            done()
        else:
            again = partial(self._send, number, to, given, 0, done)
            self.protocol.loop.call_at(monotonic() + _PAUSE_S, again)

    def _send(
        self, number: int, to: str, given: Given, tries: int, done: Callable[[], None]
    ) -> None:
        receiver = sends_to(tries, to, self.coordinator, self._wrap.name)
        if receiver is None:
            done()
            return
        named: list[tuple[int, list[str] | None]] = []
        frames: list[Unsent] = []
        for task, each in given.items():
            described = None
            if each is not None:
                described, frame = each.described()
                frames.append(frame)
            named.append((task, described))
        message = Message(OBJECTS, [number, to, named], frames)

        def sent(answer: Received | None) -> None:
            if answer is None:
                self._send(number, to, given, tries + 1, done)
            elif is_refused(answer):
                self._refused(number, to, given, done)
            else:
                done()

        self.protocol.direct.pool.ask(self.routes[receiver], message, sent)


def bytes_of(objects: Iterable[Object | None]) -> int:
    """Return the bytes of objects in a message if they are many; stored objects do not count."""
    size = sum(each.size for each in objects if each is not None and not each.stored)
    return size if size >= HELD_FROM else 0


def given_in(named: Sequence[Any], content: Sequence[Frame | Shared]) -> dict[int, Object | None]:
    """Return task -> object of a message. Raises ValueError or TypeError if it is malformed."""
    frames = iter(content)
    given: dict[int, Object | None] = {}
    for task, described in named:
        frame = None if described is None else next(frames, None)
        if frame is None and described is not None:
            raise ValueError("an object is missing")
        given[int(task)] = None if frame is None else received(frame, described)
    return given
