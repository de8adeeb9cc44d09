"""Runs the execution of a request, and answers it at the end or piece by piece."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

from wrap.cluster import store_path
from wrap.cluster.coordinator import Coordinator
from wrap.core.errors import TaskError
from wrap.core.program import Key, Program
from wrap.dispatch.execution import Execution, Outcome
from wrap.dispatch.results import all_results
from wrap.dispatch.runtime import Runtime
from wrap.http.answers import export, failed, lack, passed_back
from wrap.http.handing_on import GivesBack, HandedOnError, Hander
from wrap.http.request_fields import TIMEOUT, Environ
from wrap.http.response import Response
from wrap.http.server.connection import LATER
from wrap.net.gateway_client import ANSWERED_HEADER
from wrap.net.messages import Ident, Result
from wrap.net.object_store import Store
from wrap.net.transport import GRACE_S
from wrap.pipes.piecewise import LocalClient, Pieces
from wrap.values.value import Object


class Answering:
    """A request that an execution answers.

    Args:
        respond: makes the answer when the execution has ended.
        hander: hands the whole request on or back if another wrap is of another build; None if this
            is not allowed.
    """

    def __init__(
        self,
        runtime: Runtime,
        environ: Environ,
        ident: Ident,
        arrived: float,
        deadline: float,
        respond: Callable[[Execution, list[Result]], Response],
        hander: Hander | GivesBack | None = None,
    ) -> None:
        self._runtime = runtime
        self._ident = ident
        self._arrived = arrived
        self._deadline = deadline
        self._respond = respond
        self._hander = hander
        self._later: Callable[..., None] = environ[LATER]()
        is_entry = runtime.wrap.entry is not None
        self._forwarded = is_entry and TIMEOUT in environ
        self._has_body = environ["REQUEST_METHOD"] != "HEAD"
        self._unanswered = threading.Lock()
        self._pieces: Pieces | None = None
        self._crossing: list[str] = []

    def execute(
        self, program: Program, objects: dict[Key, Object], coordinator: Coordinator | None = None
    ) -> None:
        """Begin the execution; `coordinator` reaches the other wraps if they take part.

        No reference to it is kept: it refers to the execution, which refers to this object.
        """
        if coordinator is not None and self._runtime.store is not None:
            number = self._ident.number
            crossing = self._runtime.wrap.crossing
            self._crossing = [store_path.name_of(number, key) for key in crossing]
        client, wrap = None, self._runtime.wrap
        if wrap.entry is not None and wrap.answers is not None and self._has_body:
            client = None if self._ident.watch.traced else LocalClient(self._begin)
        execution = Execution(
            *(self._runtime, program, objects, self._ident, self._deadline, self._reply),
            *(coordinator,),
            client=client,
            hand_on=self._hander,
        )
        if coordinator is not None:
            coordinator.protocol.add(execution)
        execution.start(is_leaving=True)

    def _reply(self, execution: Execution, outcome: Outcome) -> None:
        runtime, ident, arrived = self._runtime, self._ident, self._arrived
        if isinstance(outcome, HandedOnError):
            results = execution.results
        elif isinstance(outcome, TaskError):
            results = all_results(execution, outcome)
        else:
            results = outcome
        failure: TaskError | None = None
        try:
            if isinstance(outcome, HandedOnError):
                response = passed_back(outcome.answered)
            elif isinstance(outcome, TaskError):
                failure = outcome
            else:
                response = self._respond(execution, outcome)
        except TaskError as error:
            failure = error.with_traceback(None)
        except Exception as error:  # for example, no memory for the answer
            failure = lack(error)
        if failure is not None:
            seen = results if ident.watch.traced else ()
            response = failed(runtime, failure, arrived, ident.mark, seen)
        answered = time.monotonic()
        if self._pieces is not None:
            self._pieces.end(failure is not None)
        # An answer sent piece by piece is complete, unless the task failed before the first piece.
        if self._pieces is None or failure is not None:
            self._answer(response)
        runtime.transport.release(ident)
        if runtime.store is not None and self._crossing:
            store_path.delete(runtime.store, self._crossing)
            if isinstance(outcome, TaskError):  # tasks elsewhere may still store objects
                _delete_later(runtime, runtime.store, self._crossing, self._deadline + GRACE_S)
        if runtime.wrap.entry is not None:
            export(runtime, ident, results, arrived, answered, response, failure)
        elif runtime.spans is not None and failure is not None:
            runtime.spans.part(ident, results)

    def _answer(self, response: Response) -> bool:
        """Answer unless that was done before; return whether it was not."""
        if not self._unanswered.acquire(blocking=False):
            return False
        if self._forwarded:
            response.headers.append((ANSWERED_HEADER, self._runtime.wrap.name))
        # Sending may take some milliseconds, as the kernel also does the receiver's part.
        self._later(response, elsewhere=self._runtime.loop.is_here)
        return True

    def _begin(self, body: Pieces) -> None:
        self._pieces = body
        self._runtime.threads.start(partial(self._send, body))

    def _send(self, body: Pieces) -> None:
        try:
            status, kind, headers = body.begin()
        except TaskError:  # `_reply` answers with the outcome
            body.close()
            return
        if not self._answer(Response(body, status, headers, kind)):
            body.close()


def _delete_later(runtime: Runtime, store: Store, names: list[str], when: float) -> None:
    def delete() -> None:
        runtime.threads.start(partial(store_path.delete, store, names))

    runtime.loop.call_at(when, delete)
