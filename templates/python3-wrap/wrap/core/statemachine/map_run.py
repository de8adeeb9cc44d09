"""One run of a distributed Map: records its children and formats their results.

References
----------
AWS Step Functions Developer Guide, "ResultWriter (Map)".
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from .context import timestamp
from .distributed import Tolerance
from .errors import StatesError
from .limit import longest, look
from .values import Text, dump

#: The error of a Map whose results cannot be written.
FAILED = "States.ResultWriterFailed"
#: Values of WriterConfig's fields.
TRANSFORMATIONS = ("NONE", "COMPACT", "FLATTEN")
OUTPUT_TYPES = ("JSON", "JSONL")
#: Region and account in ARNs: placeholders, for expressions that split ARNs.
_PLACE = f"local:{0:012}"
#: The limit of a result file in characters; a longer result has a file of its own.
_LONGEST = 1 << 20
#: Inputs from this length on are compressed: 1,000,000 small items take 35 MB.
_PACKED = 1 << 9
_SUCCEEDED = "SUCCEEDED"
#: Encodes texts, including lone surrogates.
_TEXT = "utf-8", "surrogatepass"
_INCLUDED = {"Included": True}


class Destination(NamedTuple):
    """The destination of results; keys begin with `prefix`."""

    bucket: str
    prefix: str


class Child(NamedTuple):
    """The end of a child; `outcome` is its output or its error.

    `given` is its input as JSON, compressed by zlib if it is long; None if it cannot be encoded.
    """

    status: str
    given: str | bytes | None
    began_s: float
    ended_s: float
    outcome: Any


class MapRun:
    """The children of a run, and the files of their results.

    Args:
        name: the state machine and the Map's label, as in ARNs: ``orders/Map``.
        tolerance: the number or share of items that may fail.
        destination: the place of result files; None if the Map returns its results.
    """

    def __init__(
        self,
        name: str,
        tolerance: Tolerance,
        config: Mapping[str, Any],
        destination: Destination | None,
        uuid: Callable[[], str],
    ) -> None:
        self.tolerance = tolerance
        self.destination = destination
        #: The remaining requests to the writing function, one for each file.
        self.files: Iterator[dict[str, str]] = iter(())
        #: The error of the Map after its results are written.
        self.error: StatesError | None = None
        default = "COMPACT" if destination is None else "NONE"
        self._transformation = config.get("Transformation", default)
        self._in_lines = config.get("OutputType") == "JSONL"
        self._name = name
        self._uuid = uuid
        ident = uuid()
        self._arn = f"{self._arn_of('mapRun')}:{ident}"
        self._folder = _folder("" if destination is None else destination.prefix, ident)
        #: Running child -> time of its begin, and its input.
        self._begun: dict[int, tuple[float, Any]] = {}

    def began(self, index: int, given: Any, now: float) -> None:
        self._begun[index] = now, given

    def ended(self, index: int, status: str, outcome: Any, now: float) -> Any:
        """Record the end of a child; return its output, or a `Child` if metadata is needed."""
        begun = self._begun.pop(index, None)
        if status == _SUCCEEDED and self._transformation != "NONE":
            return outcome
        began_s, given = (now, None) if begun is None else (begun[0], written(begun[1]))
        if given is None or len(given) < _PACKED:
            return Child(status, given, began_s, now, outcome)
        return Child(status, zlib.compress(given.encode(*_TEXT), 1), began_s, now, outcome)

    def output(self, results: Iterable[Any]) -> Any:
        """Return the result of a Map from its children's results. Raises StatesError."""
        entries = self._entries(results)
        return "".join(map(_line, entries)) if self._in_lines else list(entries)

    def write(
        self, results: Iterable[Any], pending: Iterable[str | None], error: StatesError | None
    ) -> None:
        """Set `files`, of which the last is the manifest.

        Args:
            pending: the inputs, as JSON, of children that have not begun.
        """
        self.error = error
        self.files = self._written(list(results), pending)

    @property
    def written_to(self) -> dict[str, Any]:
        """The result of a Map whose results are in files."""
        bucket = "" if self.destination is None else self.destination.bucket
        details = {"Bucket": bucket, "Key": f"{self._folder}manifest.json"}
        return {"MapRunArn": self._arn, "ResultWriterDetails": details}

    def _written(
        self, results: list[Any], pending: Iterable[str | None]
    ) -> Iterator[dict[str, str]]:
        bucket, manifest = self.written_to["ResultWriterDetails"].values()
        groups = {
            _SUCCEEDED: self._entries(filter(_has_succeeded, results)),
            "FAILED": self._entries(each for each in results if not _has_succeeded(each)),
            "PENDING": map(_pending, pending),
        }
        keys: dict[str, list[dict[str, Any]]] = {status: [] for status in sorted(groups)}
        for status, entries in groups.items():
            for number, text in enumerate(self._texts(entries)):
                key = f"{self._folder}{status}_{number}.json"
                size = len(text.encode(*_TEXT))
                keys[status].append({"Key": key, "Size": size})
                yield {"Body": text, "Bucket": bucket, "Key": key}
        told = {"DestinationBucket": bucket, "MapRunArn": self._arn, "ResultFiles": keys}
        yield {"Body": dump(told), "Bucket": bucket, "Key": manifest}

    def _texts(self, entries: Iterable[Any]) -> Iterator[str]:
        """Yield the texts of the files with `entries`; no file without entries."""
        parts, size = list[str](), 0
        for each in entries:
            look()
            part = _line(each) if self._in_lines else _json(each)
            if parts and size + len(part) > _LONGEST:
                yield self._text(parts)
                parts, size = [], 0
            parts.append(part)
            size += len(part)
        if parts:
            yield self._text(parts)

    def _text(self, parts: list[str]) -> str:
        return "".join(parts) if self._in_lines else f"[{','.join(parts)}]"

    def _entries(self, results: Iterable[Any]) -> Iterator[Any]:
        """Return the results of children after the transformation; failures keep their metadata."""
        flattens = self._transformation == "FLATTEN"
        for each in results:
            if isinstance(each, Child):
                yield self._record(each)
            elif flattens and isinstance(each, list):
                yield from each
            else:
                yield each

    def _record(self, child: Child) -> dict[str, Any]:
        """Return the metadata of a child, as in DescribeExecution."""
        name, given = self._uuid(), child.given
        if isinstance(given, bytes):
            given = zlib.decompress(given).decode(*_TEXT)
        record = {
            "ExecutionArn": f"{self._arn_of('execution')}:{name}",
            "Name": name,
            "RedriveCount": 0,
            "RedriveStatus": "NOT_REDRIVABLE",
            "RedriveStatusReason": f"Execution is {child.status} and cannot be redriven",
            "StartDate": timestamp(child.began_s),
            "StateMachineArn": self._arn_of("stateMachine"),
            "Status": child.status,
            "StopDate": timestamp(child.ended_s),
            **_input(given),
        }
        if child.status == _SUCCEEDED:
            record |= {"Output": _json(child.outcome), "OutputDetails": _INCLUDED}
        elif child.outcome is not None:
            record |= {"Error": child.outcome.name, "Cause": child.outcome.cause}
        return dict(sorted(record.items()))

    def _arn_of(self, kind: str) -> str:
        return f"arn:aws:states:{_PLACE}:{kind}:{self._name}"


def written(value: Any) -> str | None:
    """Encode a value as JSON; None if that is impossible."""
    try:
        return _json(value)
    except StatesError:
        return None


def _json(value: Any) -> str:
    """Encode a value as JSON, also a function's answer that is a text. Raises StatesError."""
    return dump(str(value) if isinstance(value, Text) else value, longest())


def _line(value: Any) -> str:
    return f"{_json(value)}\n"


def _folder(prefix: str, ident: str) -> str:
    parent = f"{prefix}/" if prefix and not prefix.endswith("/") else prefix
    return f"{parent}{ident}/"


def _has_succeeded(kept: Any) -> bool:
    return not isinstance(kept, Child) or kept.status == _SUCCEEDED


def _pending(given: str | None) -> dict[str, Any]:
    return {**_input(given), "Status": "PENDING"}


def _input(given: str | None) -> dict[str, Any]:
    """Return the fields of a record about the input."""
    if given is None:
        return {"InputDetails": {"Included": False}}
    return {"Input": given, "InputDetails": _INCLUDED}
