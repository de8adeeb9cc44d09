"""Hands a whole request to an entry of another build, if another wrap is of that build."""

from __future__ import annotations

import threading
import time

from wrap.core.builds import OTHER_BUILD, build_of, other_build
from wrap.core.errors import TaskError
from wrap.core.recovery import may_retry
from wrap.dispatch.runtime import Runtime
from wrap.http.answers import asked_by
from wrap.http.request_fields import HANDED, Environ
from wrap.net.gateway_client import HANDED_HEADER, OK, TRACE_HEADER, code_of
from wrap.net.transport import Answered, Forwarded

#: The status with which a replica confirms that it is of the requested build.
OF_BUILD = 204
#: Timeout for the answers of other wraps about their build, in seconds.
_ASKING_S = 2.0
#: The status of an entry that refuses a request and has begun nothing.
NOT_TAKEN = 421
#: Bytes of the longest request to keep until its answer, so that it can be handed on.
_LONGEST = 1 << 20
#: How long an entry keeps a handed-on request while another wrap is not of its build, in seconds. A
#: gateway picks any replica, so some calls reach the other build. Later, the last replica of the
#: entry's own build may have ended.
_KEPT_S = 2.0


class HandedOnError(TaskError):
    """The end of an execution whose request another entry answered."""

    def __init__(self, answered: Answered) -> None:
        super().__init__(OTHER_BUILD, "an entry of another build answers")
        self.answered = answered


class Hander:
    """Hands on one request, one call at a time, as often as its tasks may begin elsewhere."""

    def __init__(
        self, runtime: Runtime, environ: Environ, body: bytes | bytearray, deadline: float
    ) -> None:
        self._runtime = runtime
        self._environ, self._body = environ, body
        self._deadline = deadline
        self._handing = threading.Lock()
        self._begun = 0

    def __call__(self) -> None:
        """Hand on. Raises HandedOnError with the answer; or TaskError, ``timeout``."""
        left = may_retry(self._begun, self._runtime.wrap.attempts)
        if not left or not self._handing.acquire(blocking=False):
            return
        asked = asked_by(self._environ, self._body)
        headers = {**asked.headers, HANDED_HEADER: build_of(self._runtime.trace_key)}
        try:
            # Entries of all builds have one name; the gateway picks the replica.
            answered = self._runtime.transport.forward(
                self._runtime.wrap.name, asked._replace(headers=headers), self._deadline
            )
        except TaskError as error:
            if error.code != "remote":
                raise
            return
        finally:
            self._handing.release()
        if answered.status == OK or code_of(answered.body) != OTHER_BUILD:
            raise HandedOnError(answered)
        if answered.status != NOT_TAKEN:
            self._begun += 1


class GivesBack:
    """Gives a request back to the entry that handed it on."""

    def __init__(self) -> None:
        self._since: float | None = None

    def __call__(self) -> None:
        """Raise TaskError, ``other-build``, if another wrap is of another build for too long."""
        now = time.monotonic()
        self._since = self._since or now
        if now >= self._since + _KEPT_S:
            raise other_build("another wrap is not of the build that a request was handed on to")


def hander_of(
    runtime: Runtime, environ: Environ, body: bytes | bytearray, deadline: float
) -> Hander | GivesBack | None:
    """Return what hands the request on or back; None if it must be answered here."""
    wrap, build = runtime.wrap, build_of(runtime.trace_key)
    if environ.get(HANDED):
        # Otherwise two entries could hand it back and forth.
        return GivesBack()
    # Some of its tasks may have begun before, so another attempt must be left.
    if not (wrap.remotes and build and may_retry(0, wrap.attempts)) or len(body) > _LONGEST:
        return None
    return Hander(runtime, environ, body, deadline)


def can_be_taken(runtime: Runtime, deadline: float) -> bool:
    """Return whether all other wraps are of this build, so that a handed-on request can run here.

    If not, its entry keeps it: this build may be the one that is being replaced.
    """
    asked = Forwarded("OPTIONS", "/", {TRACE_HEADER: runtime.trace_key}, b"")
    until = min(deadline, time.monotonic() + _ASKING_S)
    try:
        answers = (runtime.transport.forward(name, asked, until) for name in runtime.wrap.remotes)
        return all(each.status == OF_BUILD for each in answers)
    except TaskError:
        return False
