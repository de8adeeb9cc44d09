"""Hands a whole request to an entry of another build, if another wrap is of that build."""

from __future__ import annotations

import threading

from flask import request

from wrap.core.builds import OTHER_BUILD, build_of, may_hand_on
from wrap.core.errors import TaskError
from wrap.dispatch.runtime import Runtime
from wrap.http.answers import asked_here
from wrap.http.request_fields import HANDED
from wrap.net.gateway_client import HANDED_HEADER, OK, code_of
from wrap.net.transport import Answered, Forwarded

#: Bytes of the longest request that is kept until its answer, so that it can be handed on.
_LONGEST = 1 << 20


class HandedOnError(TaskError):
    """The end of an execution in whose place another entry answered the request."""

    def __init__(self, answered: Answered) -> None:
        super().__init__(OTHER_BUILD, "an entry of another build answers")
        self.answered = answered


class Hander:
    """Hands on one request, at most once at a time.

    Parameters
    ----------
    build
        The build of this entry.
    """

    def __init__(self, runtime: Runtime, asked: Forwarded, build: str, deadline: float) -> None:
        self._runtime = runtime
        headers = {**asked.headers, HANDED_HEADER: build}
        self._asked = asked._replace(headers=headers)
        self._deadline = deadline
        self._handing = threading.Lock()

    def __call__(self) -> None:
        """Have an entry of another build answer, if one is reached.

        Raises HandedOnError with its answer; TaskError, ``timeout``.
        """
        if not self._handing.acquire(blocking=False):
            return
        try:
            # Entries of all builds have one name: the gateway picks who answers.
            name = self._runtime.wrap.name
            answered = self._runtime.transport.forward(name, self._asked, self._deadline)
        except TaskError as error:
            if error.code != "remote":
                raise
            return
        finally:
            self._handing.release()
        if answered.status == OK or code_of(answered.body) != OTHER_BUILD:
            raise HandedOnError(answered)


def hander_of(runtime: Runtime, body: bytes | bytearray, deadline: float) -> Hander | None:
    """Hands on the request with that body; None if nothing of it can be of another build, or an
    entry of another build may not get it."""
    wrap, build = runtime.wrap, build_of(runtime.trace_key)
    handers = request.environ.get(HANDED, "")
    if not wrap.remotes or len(body) > _LONGEST or not may_hand_on(build, wrap.attempts, handers):
        return None
    return Hander(runtime, asked_here(body), build, deadline)
