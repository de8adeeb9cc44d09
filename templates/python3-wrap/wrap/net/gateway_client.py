"""Calls other wraps over HTTP, through the OpenFaaS gateway.

urllib3 takes 20 ms and 2 MiB to import. It is imported at the first call, as most wraps call none.
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
from wrap.core.retry import REPLACEMENT, is_called_again
from wrap.net import framing
from wrap.net.messages import Request, Result, decoded_header, encoded_header
from wrap.net.transport import GRACE_S, Answered, Forwarded, Transport
from wrap.values.shared_memory import Shared

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager, Retry

CONTENT_TYPE = "application/x-chiron-frames"
#: Marks a body that is the request of another wrap.
CALL_HEADER = "X-Chiron-Call"
TIMEOUT_HEADER = "X-Chiron-Timeout"
#: Shows another entry that a wrap answered, not a gateway in its place.
ANSWERED_HEADER = "X-Chiron-Answered"
#: The build of the calling wrap, and of the entry that hands on a whole request.
BUILD_HEADER, HANDED_HEADER = "X-Chiron-Build", "X-Chiron-Handed"
#: The path that returns the address at which a replica accepts direct calls.
ADDRESS = "/_/address"
#: Its value is the key of the build, optionally followed by what else to report.
TRACE_HEADER = "X-Chiron-Trace"
_CONNECTIONS = 64
#: Timeout of a connection to the gateway, in seconds.
CONNECT_S = 5.0
#: The status of an answer without an error.
OK = 200
_NO_ADDRESS = 404
#: The statuses of the gateway's own answer if the wrap has ended or has no replica now.
_BROKEN = frozenset((500, 502, 503))
_SHOWN = 200
#: The most bytes of a host and a port.
_LONGEST_ADDRESS = 1 << 16


def retries() -> Retry:
    """Return a policy that retries, uncounted, only requests that cannot have reached the wrap."""
    from urllib3 import Retry

    return Retry(total=None, connect=1, read=0, redirect=0, status=0, other=0)


class Gateway(Transport):
    """Calls wraps as OpenFaaS functions, over connections that are kept.

    Args:
        trace_key: the key that wraps of the same build require before they trace a request.
        longest: most bytes of an answer.
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
        """Return the results of `request` in `wrap`, with times on this machine's clock.

        If a call breaks, its tasks may or may not have run. The call is repeated as soon as the
        wrap can be reached, as often as `wrap.core.retry.is_called_again` allows. `losses` is the
        number of calls that broke before.

        Raises TaskError: the wrap's own error; ``timeout``; ``remote`` if it cannot be reached.
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
        """Wait until `wrap` can be reached. Raises `lost` at the deadline."""
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
        if status in _BROKEN and _told(body) is None:
            raise _BrokenError(failure(wrap, status, body))
        if status != OK:
            raise failure(wrap, status, body)
        try:
            answered = framing.split(body)
        except ValueError as error:
            raise TaskError("remote", f"wrap {wrap} sent something that is no result") from error
        return results_of(wrap, answered, request, asked)

    def address(self, wrap: str) -> str | None:
        """Return the address at which a replica of `wrap` accepts messages, or None.

        Raises TaskError if it cannot be reached now.
        """
        import urllib3

        url = f"{self._url}/function/{wrap}{ADDRESS}"
        try:
            # A new connection lets the gateway pick another replica.
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
    """Return the body of an answer and free its connection. Raises TaskError if it is too long."""
    length = response.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) <= longest:
        return response.data  # at most `length` bytes
    data = b"" if length.isdecimal() else response.read(longest + 1)
    if length.isdecimal() or len(data) > longest:
        response.close()
        raise TaskError("remote", f"{who} answered more than {longest} bytes")
    response.release_conn()
    return data


class _Body:
    """The frames of a request, iterated once for each sending; calls `sent` after the last."""

    def __init__(self, unsent: Sequence[framing.Unsent], sent: Callable[[], None]) -> None:
        self._unsent = unsent
        self._sent = sent

    def __iter__(self) -> Iterator[bytes | memoryview]:
        yield from framing.pieces(self._unsent)
        self._sent()


def failure(wrap: str, status: int, body: bytes | bytearray | memoryview) -> TaskError:
    """Return the error of a remote wrap, or of the gateway in front of it."""
    fields = _told(body)
    if fields:
        return TaskError.from_dict(fields, status if status in (503, 504) else 500)
    shown = redacted(str(body, "utf-8", "replace").strip())[:_SHOWN]
    return TaskError("remote", f"wrap {wrap}: the gateway answered {status}: {shown}")


def code_of(body: bytes | bytearray | memoryview) -> str | None:
    """Return the error code in a wrap's answer; None if there is no error, or no wrap answered."""
    fields = _told(body)
    return None if fields is None else str(fields["code"])


def _told(body: bytes | bytearray | memoryview) -> dict[str, Any] | None:
    """Return the fields of a wrap's error; None if the body is not a wrap's error."""
    try:
        fields = json.loads(str(body, "utf-8"))
    except ValueError:
        return None
    ours = isinstance(fields, dict) and "code" in fields and "wrap" in fields
    return fields if ours else None


def answer(results: list[Result], arrived: float) -> list[framing.Unsent]:
    """Return the frames of the answer to another wrap's request that arrived at `arrived`."""
    clock = encoded_header((arrived, time.monotonic()))
    return [clock, *(frame for result in results for frame in result.frames())]


def results_of(
    wrap: str, answered: Sequence[framing.Frame | Shared], request: Request, asked: float
) -> list[Result]:
    """Decode an `answer` to `request`, with times of this clock. Raises TaskError, ``remote``."""
    now = time.monotonic()
    try:
        clock, *rest = answered
        arrived, left = decoded_header(clock)
        results = Result.read(rest)
    except (ValueError, TypeError) as error:
        raise TaskError("remote", f"wrap {wrap} sent something that is no result") from error
    if sorted((result.number, result.task) for result in results) != sorted(
        (request.ident.number, task) for task in request.tasks
    ):
        raise TaskError("remote", f"wrap {wrap} sent the results of another execution")
    # The clocks of two machines differ; the delay is assumed to be equal both ways.
    shift = (asked + now) / 2 - (arrived + left) / 2
    for result in results:
        result.shifted(shift)
    return results
