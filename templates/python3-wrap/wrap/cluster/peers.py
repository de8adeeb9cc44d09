"""What wraps tell each other about executions that several of them take part in.

The coordinator, which has the request, has each of the others begin, once. From then on every wrap
sends what its tasks give straight to the wraps that wait for it, and answers the coordinator when
all its tasks have ended. What comes twice changes nothing, so what may have been lost is sent
again.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from wrap.config.redaction import redacted
from wrap.config.wrap_spec import Wrap
from wrap.core.executions import Executions
from wrap.core.retry import REPORTS, sends_to, tries_after_refusal
from wrap.core.sharing import Sharing, is_needed
from wrap.core.streams import StreamId
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

#: The kinds of messages: take part in an execution; objects have come to be; a wrap has another
#: address than before; streams broke; tasks that they connect are in another attempt.
BEGIN, OBJECTS, MOVED, BROKE, AGAIN = "begin", "objects", "moved", "broke", "again"
#: How long to wait before a stream is opened again to a wrap that is not there, and before objects
#: are sent again that a wrap has refused, in seconds.
_PAUSE_S = 0.05

#: Objects by the tasks that gave them; None where it is enough to know that the task has ended.
Given = Mapping[int, Object | None]


class PeerProtocol:
    """The executions here that other wraps take part in.

    Args:
        address: where this replica takes messages.
    """

    def __init__(self, wrap: Wrap, direct: Direct, loop: Loop, address: str) -> None:
        self.wrap = wrap
        self.direct = direct
        self.address = address
        #: Says which tasks may begin that give something for other wraps.
        self.pressure = Pressure(loop)
        self._loop = loop
        self._executions: Executions[Execution, Given] = Executions()
        #: What forgets objects that came for executions that have not begun.
        self._forgetting: dict[int, Timer] = {}
        self._lock = threading.Lock()

    @property
    def busy(self) -> bool:
        """Whether any has not ended, or has not begun that objects are here for."""
        return self._executions.in_hand

    def routes(self, execution: int) -> dict[str, str] | None:
        """The addresses of all wraps for an execution; None where one of them has none.

        That of a wrap that is just not there is empty, where there may be another attempt.
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
        """A connection to another wrap that is a stream from now on. Raises TaskError.

        A wrap that was lost may be elsewhere soon: it is waited for where there are attempts left.
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
        """The execution of that number, while it runs here."""
        return self._executions.get(number)

    def expects(self, number: int) -> bool:
        """Whether what comes for an execution has a place: it runs, or is to begin, or is done."""
        with self._lock:
            return self._executions.expects(number)

    def has_ended(self, number: int) -> bool:
        """Whether that execution was here, and is no more."""
        return self._executions.has_ended(number)

    def add(self, execution: Execution) -> None:
        """An execution begins: it gets what has come for it already."""
        number = execution.ident.number
        with self._lock:
            early = self._executions.begin(number, execution)
            timer = self._forgetting.pop(number, None)
        if timer is not None:
            timer.cancel()
        for given in early:
            execution.arrived(given)

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Have the loop do something after so many seconds."""
        self._loop.call_at(monotonic() + seconds, action)

    def remove(self, execution: Execution) -> None:
        """An execution has ended."""
        number = execution.ident.number
        with self._lock:
            self._executions.end(number, execution, execution.complete)

    def begin_again(self, number: int) -> Execution | None:
        """Keep what comes for an execution that is to begin once more; the one before."""
        with self._lock:
            return self._executions.begin_again(number)

    def deliver(self, number: int, given: Given) -> None:
        """Objects have come for an execution."""
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
            self._forgetting[number] = self._loop.call_at(monotonic() + seconds, forget)

    def _forget(self, number: int) -> None:
        with self._lock:
            self._executions.forget(number)
            self._forgetting.pop(number, None)


class Peers:
    """The other wraps that take part in an execution, as one of them sees them.

    Args:
        coordinator: the wrap that has the request.
        routes: the address of each.
        wanted: tasks whose objects the coordinator waits for, besides those that its tasks need.
    """

    #: How long after the deadline others are waited for, in seconds: they say what hangs.
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
        self._sharing = Sharing(takers, own, coordinator, wanted)
        #: How often a store is being given objects that are to be sent then.
        self._storing = 0
        #: The wraps that objects are on their way to, one for each message.
        self._sending: dict[object, str] = {}

    def waits(self, here: Collection[int]) -> bool:
        """Whether the execution has not ended though all tasks have whose objects are `here`.

        With this wrap what it gave would be gone. The coordinator does not look after ended wraps.
        """
        return self._storing > 0 or bool(self._sending)

    def gives(self, task: int) -> bool:
        """Whether another wrap needs the object of a task of this one."""
        return self._sharing.leaves(task)

    def late(self) -> TaskError | None:
        """What hangs in others, if that is known."""
        return None

    def gone(self) -> TaskError | None:
        """Which of the others have ended and are not there again, if that is known."""
        return None

    def begin(self, execution: Execution) -> None:
        """The execution begins here."""

    def broke(self, execution: Execution, task: int, attempt: int, error: TaskError) -> None:
        """Report that the streams of a task broke, or that it was lost, to the coordinator."""
        fields = [execution.ident.number, task, attempt, error.as_dict(redacted)]
        self._tell(Message(BROKE, fields), REPORTS)

    def _tell(self, message: Message, tries: int) -> None:
        def said(answer: Received | None) -> None:
            if answer is None and tries > 1:
                self._tell(message, tries - 1)

        self.protocol.direct.pool.ask(self.routes[self.coordinator], message, said)

    def close(self) -> None:
        """The execution has ended here."""

    def gave(self, execution: Execution, results: Iterable[Result], last: bool) -> None:
        """Send what tasks gave to those that wait for it, when a store has it if that is the path.

        As `wrap.core.sharing` says; what the coordinator gets in the answer stays in the results.
        """
        results = list(results)
        outputs = {each.task: each.output for each in results}
        shares = self._sharing.of(outputs, last)
        for each in results:
            if each.task not in shares.in_answer:
                each.output = None
        crossing: dict[Key, Object] = {
            task: output
            for task, output in outputs.items()
            if task in shares.leaving and output is not None
        }
        given = {
            to: {task: outputs[task] if needed else None for task, needed in its.items()}
            for to, its in shares.messages.items()
        }
        size = sum(each.size for each in crossing.values())
        if size >= HELD_FROM:
            self.protocol.pressure.gave(size, max(each.ended - each.started for each in results))
        self._storing += 1
        stored(execution, crossing, partial(self._send_all, execution, given))

    def _send_all(self, execution: Execution, given: Mapping[str, Given]) -> None:
        self._storing -= 1
        for to, objects in given.items():
            self.send(execution, to, objects)

    def moved(self, execution: Execution, name: str, address: str) -> list[int]:
        """Another wrap is elsewhere now, and gets all that there is for it again; what is here."""
        self.routes[name] = address
        self._sending = {key: to for key, to in self._sending.items() if to != name}
        self.send_again(execution, name)
        return sorted(execution.run.here)

    def send_again(self, execution: Execution, to: str) -> None:
        """Send another wrap all that this one gave for it."""
        given: dict[int, Object | None] = {}
        for task in execution.run.here & self._wrap.tasks.keys():
            needed = self._wrap.takers[task].get(to)
            if needed is not None:
                given[task] = execution.data[task] if needed else None
        if given:
            self.send(execution, to, given)

    def send(self, execution: Execution, to: str, given: Given) -> None:
        """Send objects to another wrap, as often as `wrap.core.retry.sends_to` says."""
        key = object()
        self._sending[key] = to
        pressure, size = self.protocol.pressure, bytes_of(given.values())
        place = self.routes[to]
        pressure.leaves(place, size)

        def done() -> None:
            pressure.left(place, size)
            execution.event(forget)

        def forget() -> None:
            self._sending.pop(key, None)

        self._send(execution.ident.number, to, given, 0, done)

    def _refused(self, number: int, to: str, given: Given, done: Callable[[], None]) -> None:
        """A wrap is ending, and has not begun: the coordinator knows where it begins, or will."""
        tries = tries_after_refusal(self.coordinator, self._wrap.name)
        again = partial(self._send, number, to, given, tries, done)
        if tries:
            again()
        elif self.protocol.get(number) is None:
            done()
        else:
            self.protocol.later(_PAUSE_S, again)

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
    """The bytes that go with a message of these, where they are many; a store's do not."""
    size = sum(each.size for each in objects if each is not None and not each.stored)
    return size if size >= HELD_FROM else 0


def given_in(named: Sequence[Any], content: Sequence[Frame | Shared]) -> dict[int, Object | None]:
    """The objects of a message. Raises ValueError or TypeError where it is none."""
    frames = iter(content)
    given: dict[int, Object | None] = {}
    for task, described in named:
        frame = None if described is None else next(frames, None)
        if frame is None and described is not None:
            raise ValueError("an object is missing")
        given[int(task)] = None if frame is None else received(frame, described)
    return given
