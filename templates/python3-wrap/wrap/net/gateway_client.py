"""How objects get to other wraps: over HTTP through the OpenFaaS gateway.

The library, which takes 20 ms and 2 MiB, is imported by what first calls: most wraps call none.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from wrap.config.redaction import redacted
from wrap.core.builds import build_of
from wrap.core.errors import TaskError, too_late
from wrap.core.limits import left_s
from wrap.core.retry import REPLACEMENT, has_broken, is_called_again
from wrap.net import framing
from wrap.net.messages import Ident, Request, Result
from wrap.net.transport import GRACE_S, Answered, Forwarded
from wrap.values.shared_memory import Shared

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager, Retry

CONTENT_TYPE = "application/x-chiron-frames"
#: Says that the body is a request of another wrap's.
CALL_HEADER = "X-Chiron-Call"
TIMEOUT_HEADER = "X-Chiron-Timeout"
#: Tells another entry that a wrap answers, and no gateway in its place.
ANSWERED_HEADER = "X-Chiron-Answered"
#: The builds of the wrap that calls, and of the entry that hands on a whole request.
BUILD_HEADER, HANDED_HEADER = "X-Chiron-Build", "X-Chiron-Handed"
#: The path that tells where a replica takes calls directly.
ADDRESS = "/_/address"
#: Its value is the key of the build, perhaps with what else is to be told behind it.
TRACE_HEADER = "X-Chiron-Trace"
_CONNECTIONS = 64
#: How long a connection to the gateway may take, in seconds.
CONNECT_S = 5.0
#: The status of an answer that is none of an error.
OK = 200
_NO_ADDRESS = 404
_SHOWN = 200
#: Bytes of a host and a port.
_LONGEST_ADDRESS = 1 << 16


def retries() -> Retry:
    """Only what cannot have reached the wrap is sent again without being counted."""
    from urllib3 import Retry

    return Retry(total=None, connect=1, read=0, redirect=0, status=0, other=0)


class Gateway:
    """Calls wraps as OpenFaaS functions, over connections that are kept.

    Args:
        url: the gateway's URL.
        trace_key: what wraps of the same build want to see before they trace a request.
        longest: bytes that an answer may have.
        attempts: how often a task may begin.
    """

    def __init__(self, url: str, trace_key: str, longest: int, attempts: int) -> None:
        self._url = url.rstrip("/")
        self._trace_key = trace_key
        self._build = build_of(trace_key)
        self._longest = longest
        self.attempts = attempts

    @cached_property
    def connections(self) -> PoolManager:
        """Those to the gateway, of which none is made yet."""
        from urllib3 import PoolManager

        return PoolManager(maxsize=_CONNECTIONS, retries=retries())

    def call(
        self,
        wrap: str,
        request: Request,
        deadline: float,
        sent: Callable[[], None],
        losses: int = 0,
    ) -> list[Result]:
        """The results of `request` in `wrap`, with times on this machine's clock.

        A call that breaks leaves it open whether the tasks have run. It is made again as soon as
        the wrap can be reached, as often as `wrap.core.retry.is_called_again` says; so many calls
        were lost before.

        Raises TaskError: the wrap's own error; ``timeout``; ``remote`` when it cannot be reached.
        """
        while True:
            try:
                return self._call(wrap, request, deadline, sent)
            except _BrokenError as error:
                losses += 1
                if not is_called_again(losses, self.attempts, time.monotonic(), deadline):
                    raise error.reason from error
                print(f"{error.reason.message}; its tasks are run again")
                self._await(wrap, deadline, error.reason)

    def _await(self, wrap: str, deadline: float, lost: TaskError) -> None:
        """Return once `wrap` can be reached. Raises `lost` at the deadline."""
        while time.monotonic() < deadline:
            try:
                self.address(wrap)
            except TaskError:
                time.sleep(REPLACEMENT.pause_s)
            else:
                return
        raise lost

    def _call(
        self, wrap: str, request: Request, deadline: float, sent: Callable[[], None]
    ) -> list[Result]:
        asked = time.monotonic()
        remaining = left_s(asked, deadline)
        status, body = self._post(wrap, request, remaining, sent)
        if has_broken(status, is_of_wrap=_told(body) is not None):
            raise _BrokenError(failure(wrap, status, body))
        if status != OK:
            raise failure(wrap, status, body)
        try:
            answered = framing.split(body)
        except ValueError as error:
            raise TaskError("remote", f"wrap {wrap} sent something that is no result") from error
        return results_of(wrap, answered, request, asked)

    def address(self, wrap: str) -> str | None:
        """Where a replica of `wrap` takes messages; None where it takes none.

        Raises TaskError where it cannot be reached now.
        """
        import urllib3

        url = f"{self._url}/function/{wrap}{ADDRESS}"
        try:
            # Over a connection of its own another replica may answer.
            answer = urllib3.request(
                "GET", url, timeout=CONNECT_S, retries=False, preload_content=False
            )
            data = bounded(f"wrap {wrap}", answer, _LONGEST_ADDRESS)
        except urllib3.exceptions.HTTPError as error:
            raise TaskError("remote", f"wrap {wrap} cannot be reached: {error}") from error
        if answer.status not in (OK, _NO_ADDRESS):
            raise failure(wrap, answer.status, data)
        return data.decode(errors="replace") if answer.status == OK else None

    def _post(
        self, wrap: str, request: Request, seconds: float, sent: Callable[[], None]
    ) -> tuple[int, bytes]:
        unsent = request.frames()
        headers = {
            "Content-Length": str(framing.length(unsent)),
            "Content-Type": CONTENT_TYPE,
            CALL_HEADER: "1",
            BUILD_HEADER: self._build,
        }
        if request.ident.watch.traced:
            headers[TRACE_HEADER] = self._trace_key
        answer = self._request(wrap, "POST", "", _Body(unsent, sent), headers, seconds)
        return answer.status, answer.body

    def forward(self, wrap: str, request: Forwarded, deadline: float) -> Answered:
        remaining = left_s(time.monotonic(), deadline)
        method, target, headers, body = request
        try:
            answer = self._request(wrap, method, target, cast(bytes, body), headers, remaining)
        except _BrokenError as error:
            raise error.reason from error
        is_its_own = any(name.lower() == ANSWERED_HEADER.lower() for name, _ in answer.headers)
        if answer.status != OK and not is_its_own and _told(answer.body) is None:
            raise failure(wrap, answer.status, answer.body)
        return answer

    def release(self, execution: Ident) -> None:
        """As `wrap.net.transport.Transport.release` says: there is nothing."""

    def _request(
        self,
        wrap: str,
        method: str,
        target: str,
        body: _Body | bytes,
        headers: Mapping[str, str],
        seconds: float,
    ) -> Answered:
        import urllib3

        headers = {**headers, TIMEOUT_HEADER: f"{seconds:.3f}"}
        try:
            response = self.connections.request(
                method,
                f"{self._url}/function/{wrap}{target}",
                body=cast(bytes, body),
                headers=headers,
                timeout=urllib3.Timeout(connect=min(CONNECT_S, seconds), read=seconds + GRACE_S),
                preload_content=False,
                decode_content=False,
                redirect=False,
            )
            data = bounded(f"wrap {wrap}", response, self._longest)
            return Answered(response.status, list(response.headers.items()), data)
        except urllib3.exceptions.ReadTimeoutError as error:
            raise too_late(f"wrap {wrap}") from error
        except urllib3.exceptions.HTTPError as error:
            message = f"wrap {wrap} cannot be reached through {self._url}: {error}"
            lost = TaskError("remote", message)
            if isinstance(error, urllib3.exceptions.ProtocolError):
                raise _BrokenError(lost) from error
            raise lost from error


class _BrokenError(Exception):
    """A call that ended without an answer of the wrap, whose tasks may have begun."""

    def __init__(self, reason: TaskError) -> None:
        super().__init__(reason.message)
        self.reason = reason


def bounded(who: str, response: BaseHTTPResponse, longest: int) -> bytes:
    """The body of an answer, whose connection is used again; TaskError where it is too long."""
    length = response.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) <= longest:
        return response.data  # which is no longer than that
    data = b"" if length.isdecimal() else response.read(longest + 1)
    if length.isdecimal() or len(data) > longest:
        response.close()
        raise TaskError("remote", f"{who} answered more than {longest} bytes")
    response.release_conn()
    return data


class _Body:
    """The frames of a request, as often as it is sent; says when they are."""

    def __init__(self, unsent: Sequence[framing.Unsent], sent: Callable[[], None]) -> None:
        self._unsent = unsent
        self._sent = sent

    def __iter__(self) -> Iterator[bytes | memoryview]:
        yield from framing.pieces(self._unsent)
        self._sent()


def failure(wrap: str, status: int, body: bytes | bytearray | memoryview) -> TaskError:
    """The error of a remote wrap, or of the gateway in front of it."""
    fields = _told(body)
    if fields:
        return TaskError.from_dict(fields, status if status in (503, 504) else 500)
    shown = redacted(str(body, "utf-8", "replace").strip())[:_SHOWN]
    return TaskError("remote", f"wrap {wrap}: the gateway answered {status}: {shown}")


def code_of(body: bytes | bytearray | memoryview) -> str | None:
    """The code of the error that a wrap answered; None where it was none, or no wrap's."""
    fields = _told(body)
    return None if fields is None else str(fields["code"])


def _told(body: bytes | bytearray | memoryview) -> dict[str, Any] | None:
    """What a wrap says of an error; None where it was no wrap that answered."""
    try:
        fields = json.loads(str(body, "utf-8"))
    except ValueError:
        return None
    ours = isinstance(fields, dict) and "code" in fields and "wrap" in fields
    return fields if ours else None


def answer(results: list[Result], arrived: float) -> list[framing.Unsent]:
    """The frames of a wrap's answer to another one's request that arrived at `arrived`."""
    clock = json.dumps([arrived, time.monotonic()])
    return [clock, *(frame for result in results for frame in result.frames())]


def results_of(
    wrap: str, answered: Sequence[framing.Frame | Shared], request: Request, asked: float
) -> list[Result]:
    """What `answer` to `request` says, by this machine's clock; TaskError, ``remote``."""
    now = time.monotonic()
    try:
        clock, *rest = answered
        arrived, left = json.loads(str(cast(framing.Frame, clock), "utf-8"))
        results = Result.read(rest)
    except (ValueError, TypeError) as error:
        raise TaskError("remote", f"wrap {wrap} sent something that is no result") from error
    if sorted((result.number, result.task) for result in results) != sorted(
        (request.ident.number, task) for task in request.tasks
    ):
        raise TaskError("remote", f"wrap {wrap} sent the results of another execution")
    # Clocks of two machines differ; the time on the way is taken to be equal both ways.
    shift = (asked + now) / 2 - (arrived + left) / 2
    for result in results:
        result.shifted(shift)
    return results
