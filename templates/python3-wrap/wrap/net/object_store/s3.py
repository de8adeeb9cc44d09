"""An S3-compatible store, such as MinIO or Amazon's.

The library signs requests and interprets answers. Objects are sent to signed URLs, without a copy:
the library's own calls copy them and hash them twice.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, cast
from urllib.parse import SplitResult
from xml.etree.ElementTree import ParseError

import urllib3
from minio import Minio
from minio.deleteobjects import DeleteObject
from minio.error import MinioException, S3Error

from wrap.core.errors import TaskError
from wrap.core.limits import left_s
from wrap.net.object_store import CONNECT_S, failed, late, shown

#: Most connections that are kept.
_KEPT = 64
#: Validity of a signed URL: longer than any transfer, even if clocks differ.
_GOOD = timedelta(hours=1)
#: A connection that broke, or was never made.
_BROKEN = (urllib3.exceptions.ProtocolError, urllib3.exceptions.NewConnectionError)
_OK, _BUSY = 200, 503


class _Connections(urllib3.PoolManager):
    """Ends each request at the deadline of its thread, including the library's own requests."""

    #: `deadline` is when this thread must stop waiting, in seconds of the monotonic clock.
    thread = threading.local()

    def urlopen(  # type: ignore[override]
        self, method: str, url: str, redirect: bool = True, **options: Any
    ) -> urllib3.BaseHTTPResponse:
        seconds = left_s(time.monotonic(), self.thread.deadline)
        options["timeout"] = urllib3.Timeout(connect=min(CONNECT_S, seconds), total=seconds)
        return super().urlopen(method, url, redirect, **options)


class S3:
    """A store in an existing bucket: see `store_of`. ValueError if no bucket is named."""

    def __init__(self, url: SplitResult, password: str) -> None:
        self.place = shown(url)
        self._bucket = url.path.strip("/")
        if not self._bucket or "/" in self._bucket:
            raise ValueError(f"chiron_store names no bucket: {self.place} needs a /BUCKET")
        # A busy server may ask to retry in a minute.
        once_more = urllib3.Retry(1, read=0, allowed_methods=None, respect_retry_after_header=False)
        self._connections = _Connections(maxsize=_KEPT, retries=once_more)
        self._client = Minio(
            endpoint=url.netloc.rpartition("@")[2],
            access_key=url.username,
            secret_key=password,
            secure=url.scheme == "s3s",
            http_client=self._connections,
        )

    def put(self, name: str, content: bytes | memoryview, deadline: float) -> None:
        self._done("PUT", name, deadline, content)

    def get(self, name: str, deadline: float) -> bytes:
        return self._done("GET", name, deadline)

    def delete(self, names: Sequence[str], deadline: float) -> None:
        self._connections.thread.deadline = deadline
        doomed = map(DeleteObject, names)
        try:
            for fault in self._client.remove_objects(self._bucket, doomed):
                raise failed(self.place, f"{fault.code}: {fault.message}")
        except (MinioException, urllib3.exceptions.HTTPError) as error:
            raise self._fault(error) from error

    def _done(
        self, method: str, name: str, deadline: float, body: bytes | memoryview = b""
    ) -> bytes:
        """Send a request and return the body of its answer. Raises as `Store` does."""
        self._connections.thread.deadline = deadline
        try:
            url = self._client.get_presigned_url(method, self._bucket, name, _GOOD)
            answer = None
            with contextlib.suppress(*_BROKEN):
                answer = self._asked(method, url, body)
            if answer is None or answer.status == _BUSY:
                answer = self._asked(method, url, body)
            if answer.status != _OK:
                raise S3Error.fromxml(answer)
        except (MinioException, urllib3.exceptions.HTTPError, ParseError) as error:
            raise self._fault(error) from error
        return answer.data

    def _asked(self, method: str, url: str, body: bytes | memoryview) -> urllib3.BaseHTTPResponse:
        return self._connections.request(method, url, body=cast(bytes, body), retries=False)

    def _fault(self, error: Exception) -> TaskError:
        """Return the error without the URL, which is signed."""
        if isinstance(error, S3Error):
            return failed(self.place, f"{error.code}: {error.message}")
        reason = getattr(error, "reason", error)
        if isinstance(reason, urllib3.exceptions.NewConnectionError):  # which counts as a timeout
            return failed(self.place, reason)
        timeout = isinstance(reason, urllib3.exceptions.TimeoutError)
        return late(self.place) if timeout else failed(self.place, reason)
