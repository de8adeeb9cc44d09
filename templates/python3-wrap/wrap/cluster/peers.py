"""What wraps tell each other about executions that several of them take part in.

The home, which has the request, has each of the others begin, once. From then on every wrap sends
what its tasks give straight to the wraps that wait for it, and answers the home when all its tasks
have ended. What comes twice changes nothing, so what may have been lost is sent again.
"""

from __future__ import annotations

import socket
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from wrap.config.redaction import redacted
from wrap.config.wrap_spec import Wrap
from wrap.dispatch.backpressure import Pressure
from wrap.dispatch.storing import stored
from wrap.event_loop.loop import Loop, Timer
from wrap.net.direct import Direct, is_refused
from wrap.net.framing import Frame, Unsent
from wrap.net.peer_connection import Message, Received
from wrap.net.transport import GRACE_S
from wrap.pipes.broker import STREAM, Which
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
#: How often the home is told that streams broke.
_TOLD = 3
#: How long what comes for an execution is kept that has not begun here, in seconds.
_EARLY_S = 30.0
#: The same of one that has ended all its tasks here: after a loss elsewhere some may run again.
_AGAIN_S = 5.0
#: So many executions that have ended are remembered, for which objects may still come.
_ENDED = 10_000

#: Objects by the tasks that gave them; None where it is enough to know that the task has ended.
Given = Mapping[int, Object | None]


class PeerProtocol:
    """The executions here that other wraps take part in.

    Parameters
    ----------
    address
        Where this replica takes messages.

    Attributes
    ----------
    pressure
        Says which tasks may begin that give something for other wraps.
    """

    def __init__(self, wrap: Wrap, direct: Direct, loop: Loop, address: str) -> None:
        self.wrap = wrap
        self.direct = direct
        self.address = address
        self.pressure = Pressure(loop)
        self._loop = loop
        self._running: dict[int, Execution] = {}
        self._early: dict[int, tuple[list[Given], Timer]] = {}
        #: Whether all its tasks here ended, by the numbers of executions.
        self._ended = OrderedDict[int, bool]()
        self._lock = threading.Lock()

    @property
    def busy(self) -> bool:
        """Whether any has not ended."""
        return bool(self._running)

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

    def connect(self, name: str, which: Which, is_wanted: Callable[[], bool]) -> socket.socket:
        """A connection to another wrap that is a stream from now on. Raises TaskError.

        A wrap that was lost may be elsewhere soon: it is waited for where there are attempts left.
        """
        while True:
            execution = self.get(which.execution)
            peers = None if execution is None else execution.peers
            if peers is None or not is_wanted():
                raise lost("the execution is over")
            try:
                return self.direct.lines.stream(peers.routes[name], Message(STREAM, which))
            except (OSError, ValueError) as error:
                ends = self.direct.replicas(name).is_ending(peers.routes[name])
                if self.wrap.attempts == 1 and not ends:
                    raise lost(f"no stream to wrap {name}: {error}") from error
            sleep(_PAUSE_S)

    def get(self, number: int) -> Execution | None:
        """The execution of that number, while it runs here."""
        return self._running.get(number)

    def expects(self, number: int) -> bool:
        """Whether what comes for an execution has a place: it runs, or is to begin, or is done."""
        with self._lock:
            known = number in self._running or number in self._early
            return known or self._ended.get(number, False)

    def has_ended(self, number: int) -> bool:
        """Whether that execution was here, and is no more."""
        return number in self._ended

    def add(self, execution: Execution) -> None:
        """An execution begins: it gets what has come for it already."""
        number = execution.ident.number
        with self._lock:
            self._running[number] = execution
            self._ended.pop(number, None)
            early, timer = self._early.pop(number, ([], None))
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
            if self._running.get(number) is execution:
                del self._running[number]
                self._ended[number] = execution.complete
                if len(self._ended) > _ENDED:
                    self._ended.popitem(last=False)

    def begin_again(self, number: int) -> Execution | None:
        """Keep what comes for an execution that is to begin once more; the one before."""
        with self._lock:
            self._ended.pop(number, None)
            return self._running.pop(number, None)

    def deliver(self, number: int, given: Given) -> None:
        """Objects have come for an execution."""
        with self._lock:
            execution = self._running.get(number)
            if execution is None:
                if self._ended.get(number, True):
                    self._keep_early(number, given)
                return
        execution.arrived(given)

    def _keep_early(self, number: int, given: Given) -> None:
        if number not in self._early:
            when = monotonic() + (_AGAIN_S if number in self._ended else _EARLY_S)
            forget = partial(self._forget, number)
            self._early[number] = [], self._loop.call_at(when, forget)
        self._early[number][0].append(given)

    def _forget(self, number: int) -> None:
        self._early.pop(number, None)


class Peers:
    """The other wraps that take part in an execution, as one of them sees them.

    Parameters
    ----------
    home
        The wrap that has the request.
    routes
        The address of each.
    wanted
        Tasks whose objects the home waits for, besides those that its tasks need.
    """

    #: How long after the deadline others are waited for, in seconds: they say what hangs.
    grace_s = 2 * GRACE_S

    def __init__(
        self, exchange: PeerProtocol, home: str, routes: dict[str, str], wanted: frozenset[int]
    ) -> None:
        self.exchange = exchange
        self.home = home
        self.routes = routes
        self.wanted = wanted
        self._wrap = exchange.wrap
        #: Whether the object of another wrap's task is needed here, or only its end.
        self.needs = partial(is_needed, exchange.wrap, frozenset())
        #: How often a store is being given objects that are to be sent then.
        self._storing = 0
        #: The wraps that objects are on their way to, one for each message.
        self._sending: dict[object, str] = {}

    @property
    def waiting(self) -> bool:
        """Whether the execution has not ended though all tasks here have.

        With this wrap what it gave would be gone, and the home does not look after who has ended.
        """
        return self._storing > 0 or bool(self._sending)

    def gives(self, task: int) -> bool:
        """Whether another wrap needs the object of a task of this one."""
        takers = self._wrap.takers[task]
        return any(needed and to != self._wrap.name for to, needed in takers.items()) or (
            task in self.wanted and self.home != self._wrap.name
        )

    def late(self) -> TaskError | None:
        """What hangs in others, if that is known."""
        return None

    def gone(self) -> TaskError | None:
        """Which of the others have ended and are not there again, if that is known."""
        return None

    def begin(self, execution: Execution) -> None:
        """The execution begins here."""

    def broke(self, execution: Execution, task: int, attempt: int, error: TaskError) -> None:
        """The streams of a task broke, or it was lost: the home decides what becomes of it."""
        fields = [execution.ident.number, task, attempt, error.as_dict(redacted)]
        self._tell(Message(BROKE, fields), _TOLD)

    def _tell(self, message: Message, tries: int) -> None:
        def said(answer: Received | None) -> None:
            if answer is None and tries > 1:
                self._tell(message, tries - 1)

        self.exchange.direct.lines.ask(self.routes[self.home], message, said)

    def close(self) -> None:
        """The execution has ended here."""

    def gave(self, execution: Execution, results: Iterable[Result], last: bool) -> None:
        """Send what tasks gave to those that wait for it, when a store has it if that is the path.

        What the home gets of the `last` ones stays in the results, which are its answer, unless
        that has to wait until others have theirs.
        """
        results = list(results)
        elsewhere = {to for each in results for to in self._wrap.takers[each.task]}
        last = last and elsewhere <= {self.home, self._wrap.name}
        given: dict[str, dict[int, Object | None]] = {}
        crossing: dict[Key, Object] = {}
        for result in results:
            takers = dict(self._wrap.takers[result.task])
            if result.task in self.wanted:
                takers[self.home] = True
            output, result.output = result.output, None
            for to, needed in takers.items():
                if to != self._wrap.name and needed and output is not None:
                    crossing[result.task] = output
                if to == self.home and last:
                    result.output = output if needed else None
                elif to != self._wrap.name:
                    given.setdefault(to, {})[result.task] = output if needed else None
        size = sum(each.size for each in crossing.values())
        if size >= HELD_FROM:
            self.exchange.pressure.gave(size, max(each.ended - each.started for each in results))
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
        """Send objects to another wrap, as often as is needed, and by the home if it has to be."""
        key = object()
        self._sending[key] = to
        pressure, size = self.exchange.pressure, bytes_of(given.values())
        place = self.routes[to]
        pressure.leaves(place, size)

        def done() -> None:
            pressure.left(place, size)
            execution.event(forget)

        def forget() -> None:
            self._sending.pop(key, None)

        self._send(execution.ident.number, to, given, 0, done)

    def _refused(self, number: int, to: str, given: Given, done: Callable[[], None]) -> None:
        """A wrap is ending, and has not begun: the home knows where it begins, or will."""
        again = partial(self._send, number, to, given, 2, done)
        if self.home != self._wrap.name:
            again()
        elif self.exchange.get(number) is None:
            done()
        else:
            again = partial(self._send, number, to, given, 0, done)
            self.exchange.later(_PAUSE_S, again)

    def _send(
        self, number: int, to: str, given: Given, tries: int, done: Callable[[], None]
    ) -> None:
        by = to if tries < 2 else self.home
        if tries > 2 or by == self._wrap.name:
            done()  # the home looks after a wrap that it has lost
            return
        named, frames = list[tuple[int, list[str] | None]](), list[Unsent]()
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

        self.exchange.direct.lines.ask(self.routes[by], message, sent)


def is_needed(wrap: Wrap, wanted: frozenset[int], task: int) -> bool:
    """Whether a task of this wrap needs the object of another task, or its answer is `wanted`."""
    return task in wanted or wrap.takers[task].get(wrap.name, False)


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
