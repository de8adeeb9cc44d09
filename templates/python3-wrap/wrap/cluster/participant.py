"""Handles the messages of other wraps: runs tasks for them, and receives objects."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from wrap.cluster import store_path
from wrap.cluster.coordinator import Coordinator
from wrap.cluster.notices import ENDED, UNKNOWN
from wrap.cluster.offload import FREE
from wrap.cluster.peers import (
    AGAIN,
    BEGIN,
    BROKE,
    MOVED,
    OBJECTS,
    PeerProtocol,
    Peers,
    bytes_of,
    given_in,
)
from wrap.cluster.store_path import outputs
from wrap.config.redaction import redacted
from wrap.core.admission import deadline_of
from wrap.core.dag import Engine
from wrap.core.ending import accepts_data, accepts_execution
from wrap.core.errors import SERVER_FAULT, TaskError
from wrap.core.placement import Instances
from wrap.core.program import Key, Program, given_to
from wrap.core.streams import StreamId
from wrap.dispatch.execution import CANCELLED, Execution, Outcome
from wrap.dispatch.live import again, streams_broke
from wrap.dispatch.results import all_results
from wrap.dispatch.runtime import Runtime
from wrap.event_loop.threads import own_work
from wrap.net.direct import ANSWER, CALL, ENDING
from wrap.net.framing import Unsent, unsent
from wrap.net.gateway_client import OK, answer
from wrap.net.messages import Request
from wrap.net.peer_connection import Message, PeerConnection, Received
from wrap.pipes.broker import STREAM
from wrap.pipes.frames import bounded
from wrap.pipes.piecewise import RemoteClient

#: How long a coordinator whose connection broke has to reconnect, in seconds: twice as long as a
#: handshake may take (`wrap.net.handshake`). Until then the execution continues.
_RENEWAL_S = 2.0
#: The reply of a replica that is shutting down: the sender has to use another replica.
_REFUSAL = Message(ANSWER, [ENDING])


class Participant:
    """Takes part in executions of other wraps."""

    def __init__(self, runtime: Runtime, protocol: PeerProtocol | None) -> None:
        self._runtime = runtime
        self._protocol = protocol
        self._handlers: dict[str, Callable[[PeerConnection, Received], None]] = {
            CALL: self._called,
            FREE: self._asked_for_free,
            STREAM: self._streamed,
        }
        if protocol is not None:
            more = {
                BEGIN: self._begun,
                OBJECTS: self._given,
                MOVED: self._moved,
                BROKE: self._broke,
                AGAIN: self._again,
            }
            self._handlers |= {kind: partial(handler, protocol) for kind, handler in more.items()}
        #: Execution -> the connection over which its coordinator awaits the answer.
        self._awaited_by: dict[Execution, PeerConnection] = {}
        #: Execution -> its answer that could not be sent, kept for `_RENEWAL_S`.
        self._unsent: dict[int, Message] = {}
        #: The executions that were refused, for `_RENEWAL_S`: if no other replica is found in that
        #: time, this one is urged to take part.
        self._refused: set[int] = set()
        self._answering: set[PeerConnection] = set()
        #: Whether its replica was told to shut down; it then accepts no new work.
        self.ending = False

    @property
    def in_hand(self) -> int:
        """The number of other wraps' executions that have work here."""
        return len(self._answering) + sum(map(_is_busy, list(self._awaited_by)))

    @property
    def busy(self) -> bool:
        """Whether work is in progress or may begin, or an answer has still to be sent."""
        broker, protocol = self._runtime.broker, self._protocol
        early = broker is not None and broker.in_hand
        executions = early or (protocol is not None and protocol.busy)
        waited_for = self._answering or self._awaited_by or self._unsent or self._refused
        return executions or bool(waited_for)

    def handle(self, connection: PeerConnection, message: Received) -> None:
        """Handle a message. Raises ValueError or TypeError if it is malformed."""
        handler = self._handlers.get(message.kind)
        if handler is None:
            raise ValueError("a message of an unknown kind")
        handler(connection, message)

    def connection_ended(self, connection: PeerConnection, why: Exception | None) -> None:
        """Handle the end of a connection; it was orderly if `why` is None."""
        when = time.monotonic() + (0.0 if why is None else _RENEWAL_S)
        for execution, by in list(self._awaited_by.items()):
            if by is connection:
                self._runtime.loop.call_at(when, partial(self._cancel, execution, connection))

    def _cancel(self, execution: Execution, connection: PeerConnection) -> None:
        """Cancel an execution that nobody awaits, unless its coordinator has reconnected."""
        if self._awaited_by.get(execution) is connection:
            execution.fail(CANCELLED)

    def _expects(self, number: int) -> bool:
        """Return whether an execution runs here, or some of its data has arrived."""
        broker, protocol = self._runtime.broker, self._protocol
        streams = broker is not None and broker.expects(number)
        return streams or (protocol is not None and protocol.expects(number))

    def _called(self, connection: PeerConnection, message: Received) -> None:
        (seconds,) = message.fields
        request = _request(message)
        if self.ending:
            connection.send(_REFUSAL)
            return
        self._answering.add(connection)
        self._runtime.threads.start(partial(self._run, connection, request, float(seconds)))

    def _asked_for_free(self, connection: PeerConnection, _: Received) -> None:
        free = 0 if self.ending else self._runtime.mechanism.free
        connection.send(Message(ANSWER, [free]))

    def _streamed(self, connection: PeerConnection, message: Received) -> None:
        """Turn the connection into a stream that a task here reads."""
        stream = StreamId(*map(int, message.fields))
        if self._runtime.broker is None:
            raise ValueError("a stream that nothing reads here")
        if not accepts_data(self.ending, self._expects(stream.execution)):
            connection.close()
            return
        channel = bounded(connection.detached())
        channel.send(b"1")
        self._runtime.broker.arrived(stream, channel)

    def _run(self, connection: PeerConnection, asked: Request, seconds: float) -> None:
        runtime, arrived = self._runtime, time.monotonic()

        deadline = deadline_of(arrived, runtime.wrap.timeout_s, seconds)

        def ended(execution: Execution | None, outcome: Outcome) -> None:
            if execution is not None:
                _export(runtime, execution, outcome)
            try:
                if not isinstance(outcome, TaskError):
                    outputs = store_path.outputs(outcome)
                    store_path.put(runtime.store, asked.ident.number, outputs, deadline)
            except TaskError as error:
                outcome = error
            connection.send(self._answer(outcome, arrived))
            self._answering.discard(connection)

        try:
            engine = engine_of(runtime, asked)
        except TaskError as error:
            ended(None, error)
            return
        Execution(runtime, engine, asked.objects, asked.ident, deadline, ended).start(own_work())

    def _begun(self, protocol: PeerProtocol, connection: PeerConnection, message: Received) -> None:
        seconds, coordinator, routes, renewed, urged, attempts = message.fields
        request = _request(message)
        number, arrived = request.ident.number, time.monotonic()
        if renewed:  # the coordinator has reconnected
            running = protocol.get(number)
            if running is not None and running in self._awaited_by:
                self._awaited_by[running] = connection
            else:
                kept = self._unsent.pop(number, None)
                connection.send(kept or Message(ANSWER, [UNKNOWN]))
            return
        if not accepts_execution(self.ending, bool(urged), self._expects(number)):
            self._refused.add(number)
            until = time.monotonic() + _RENEWAL_S
            self._runtime.loop.call_at(until, partial(self._refused.discard, number))
            connection.send(_REFUSAL)
            return
        self._refused.discard(number)
        try:
            part = self._runtime.wrap.share_of(frozenset(request.tasks), request.gives)
        except KeyError:
            connection.send(self._answer(other_plan(), arrived))
            return

        def ended(ended: Execution, outcome: Outcome) -> None:
            coordinator = self._awaited_by[ended]
            _export(self._runtime, ended, outcome)
            if outcome is CANCELLED:  # a coordinator that has reconnected begins it again
                coordinator.send(Message(ANSWER, [UNKNOWN]))
                del self._awaited_by[ended]
                return
            answer, pressure = self._answer(outcome, arrived), protocol.pressure
            size = 0 if isinstance(outcome, TaskError) else bytes_of(outputs(outcome).values())
            pressure.record_sending(coordinator, size)
            if not coordinator.send(answer, partial(pressure.record_sent, coordinator, size)):
                self._unsent[number] = answer
                self._runtime.loop.call_at(time.monotonic() + _RENEWAL_S, forget)
            del self._awaited_by[ended]

        def forget() -> None:
            self._unsent.pop(number, None)

        deadline = deadline_of(arrived, self._runtime.wrap.timeout_s, float(seconds))
        peers = Peers(protocol, str(coordinator), dict(routes), request.gives)
        client = None
        if request.piecewise and self._runtime.broker is not None:
            wanted = lambda: protocol.get(number) is not None  # noqa: E731
            client = RemoteClient(lambda stream: protocol.connect(str(coordinator), stream, wanted))
        execution = Execution(
            *(self._runtime, Engine(part), request.objects, request.ident, deadline, ended, peers),
            client=client,
        )
        for task, attempt in attempts:
            again(execution, int(task), int(attempt))
        self._awaited_by[execution] = connection
        protocol.add(execution)
        execution.start()

    def _given(self, protocol: PeerProtocol, connection: PeerConnection, message: Received) -> None:
        number, to, named = message.fields
        given = given_in(named, message.content)
        if to == self._runtime.wrap.name:
            if not accepts_data(self.ending, self._expects(int(number))):
                connection.send(_REFUSAL)
                return
            protocol.deliver(int(number), given)  # tasks that begin now do not wait for the answer
        else:
            execution = protocol.get(int(number))
            peers = execution and execution.peers
            # Only a coordinator sends on what another wrap could not send directly.
            if execution is not None and isinstance(peers, Coordinator):
                execution.event(peers.send, execution, str(to), given)
        connection.send(Message(ANSWER, [OK]))

    def _moved(self, protocol: PeerProtocol, connection: PeerConnection, message: Received) -> None:
        number, name, address = message.fields
        if name == self._runtime.wrap.name:
            if before := protocol.begin_again(int(number)):
                before.fail(CANCELLED)
            connection.send(Message(ANSWER, [OK, []]))
            return
        execution = protocol.get(int(number))
        here = None
        if execution is not None:
            with execution.lock:
                if not execution.over and execution.peers is not None:
                    here = execution.peers.update_address(execution, str(name), str(address))
        self._answer_ended_tasks(protocol, connection, int(number), here)

    def _answer_ended_tasks(
        self,
        protocol: PeerProtocol,
        connection: PeerConnection,
        number: int,
        here: list[int] | None,
    ) -> None:
        if here is not None:
            connection.send(Message(ANSWER, [OK, here]))
        else:
            ended = protocol.get(number) is not None or protocol.has_ended(number)
            connection.send(Message(ANSWER, [ENDED if ended else UNKNOWN]))

    def _broke(self, protocol: PeerProtocol, connection: PeerConnection, message: Received) -> None:
        number, task, attempt, error = message.fields
        execution = protocol.get(int(number))
        if execution is not None:
            said = TaskError.from_dict(error, status=500)
            execution.event(streams_broke, execution, int(task), int(attempt), said)
        connection.send(Message(ANSWER, [OK]))

    def _again(self, protocol: PeerProtocol, connection: PeerConnection, message: Received) -> None:
        number, task, attempt = map(int, message.fields)
        execution = protocol.get(number)
        here = again(execution, task, attempt) if execution is not None else None
        self._answer_ended_tasks(protocol, connection, number, here)

    def _answer(self, outcome: Outcome, arrived: float) -> Message:
        if isinstance(outcome, TaskError):
            said: list[Unsent] = [unsent(json.dumps(error_fields(self._runtime, outcome, arrived)))]
            return Message(ANSWER, [outcome.status], said)
        return Message(ANSWER, [OK], answer(outcome, arrived))


def _export(runtime: Runtime, execution: Execution, outcome: Outcome) -> None:
    """Export the spans of a failed part, because its coordinator gets no results."""
    if runtime.spans is not None and isinstance(outcome, TaskError):
        runtime.spans.part(execution.ident, all_results(execution, outcome))


def error_fields(runtime: Runtime, error: TaskError, arrived: float) -> dict[str, Any]:
    """Return the fields of an error for the caller."""
    cause = runtime.memory_kills.during(arrived) if error.status >= SERVER_FAULT else None
    if cause:
        error.message = f"wrap {runtime.wrap.name}: {cause}: {error.message}"
        print(f"wrap {runtime.wrap.name}: {cause}", file=sys.stderr)
    return error.located(None, runtime.wrap.name).as_dict(redacted)


def engine_of(runtime: Runtime, asked: Request) -> Program:
    """Return the program for another wrap's request. Raises TaskError if it does not fit."""
    wrap = runtime.wrap
    engine: Program | None = None
    try:
        if wrap.instances:
            engine = Instances(wrap, asked.tasks)
            needed: set[Key] = set(map(given_to, asked.tasks))
            missing: set[Key] = {task for task in asked.tasks if not wrap.runs(task)}
        else:
            part = wrap.part_of(tuple(asked.tasks), asked.gives)
            engine, missing = Engine(part), set()
            needed = {key for call in part.calls.values() for each in call for key in each.needs}
        missing |= needed.difference(asked.tasks, asked.objects)
    except KeyError as error:
        missing = {error.args[0]}
    if missing or engine is None or not asked.tasks:
        raise other_plan()
    return engine


def other_plan() -> TaskError:
    """Return the error of a request for tasks that this wrap does not run."""
    message = "this wrap runs other tasks: deploy all wraps of one plan"
    return TaskError("other-plan", message, status=400)


def _request(message: Received) -> Request:
    request = Request.read(iter(message.content))
    if request is None:
        raise ValueError("a message without a request")
    return request


def _is_busy(execution: Execution) -> bool:
    """Return whether a task is to run now, so that the execution does not only wait for objects."""
    return not execution.run.begun or bool(execution.run.limits)
