"""The expected answer of a workflow to one request, without the parts that vary.

Answers contain times, durations, random numbers and sets in any order. Several runs of the
functions, each alone, show which parts vary. The other parts must be equal wherever the workflow
runs.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from chiron.workflow.data import bytes_of, is_json, is_utf8
from chiron.workflow.documents import Document
from chiron.workflow.errors import ChironError
from chiron.workflow.model import Workflow
from chiron.workflow.names import shown

#: Of answers longer than this, in characters, only the digest is stored.
LONGEST = 1 << 16
#: Relative tolerance: float sums in different orders differ by less.
_TOLERANCE = 1e-9
#: Relative tolerance below the change of a clock (seconds since 1970) within two milliseconds.
_FINE = 1e-12
_INDEX = re.compile(r"\[\d+\]")
_STEP = re.compile(r'\.(\w+)|\[(?:("(?:[^"\\]|\\.)*")|(\d+|\*))\]')
#: The fewest runs that show which parts always vary.
_FEWEST = 3
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: The folder of an image of the embedded gateway; in containers all images have the same folder.
_IMAGE = re.compile(r"/[^\s\"]*?/images/[^/\s\"]+=[^/\s\"]+/[0-9a-f]{16}\b")


@dataclass(frozen=True)
class Difference:
    """The JSON path (``$`` is the whole) at which two answers differ, and both values."""

    path: str
    expected: Any
    answered: Any
    reordered: bool = False


class ExpectedAnswer(Document):
    """The answer of a workflow whose functions ran one after another, each alone.

    Attributes:
        request_sha256: the digest of the request.
        output: the answer of the first run; None if it is long or not UTF-8.
        output_sha256: the digest of that answer.
        varies: JSON paths at which runs differed; ``[*]`` stands for any index, ``$`` for the
            whole.
        any_order: JSON paths of lists without an order: their items came in different orders.
        always_varies: JSON paths, such as of random numbers, at which all runs differed pairwise,
            of three runs or more. If only some runs differed, a cache may have been filled.
        fails: whether a Fail state ends the workflow; then the output is `failure_text`.
    """

    request_sha256: str
    output: str | None = None
    output_sha256: str
    varies: tuple[str, ...] = ()
    any_order: tuple[str, ...] = ()
    always_varies: tuple[str, ...] = ()
    fails: bool = False

    @classmethod
    def learned(
        cls, request: bytes, outputs: Sequence[str], unordered: Sequence[str] = ()
    ) -> ExpectedAnswer:
        """Return the common parts of `outputs`; lists under the keys `unordered` have no order."""
        if not outputs:
            return cls.learned(request, [""]).without(["$"])
        first, any_order = outputs[0], tuple("$" + _step(key) for key in unordered)
        known = cls(
            request_sha256=_digest(request),
            output=first if len(first) <= LONGEST and is_utf8(first) else None,
            output_sha256=_digest(_in_order(first, any_order)),
            any_order=any_order,
            always_varies=_always_differing(outputs),
        )
        return known.joined(outputs[1:])

    def joined(self, outputs: Sequence[str]) -> ExpectedAnswer:
        """Return this answer, with the differences from `outputs` added to the parts that vary."""
        found = [each for output in outputs for each in self.differences(output, tolerance=_FINE)]
        varies = {each.path for each in found if not each.reordered}
        any_order = {each.path for each in found if each.reordered}
        return self.model_copy(
            update={
                "varies": tuple(sorted({*self.varies, *_general(varies)})),
                "any_order": tuple(sorted({*self.any_order, *_general(any_order)})),
            }
        )

    def without(self, paths: Sequence[str]) -> ExpectedAnswer:
        """Return this answer, with any value allowed at the JSON `paths`."""
        left = (each for each in self.always_varies if not any(_is_in(each, p) for p in paths))
        update = {"varies": (*self.varies, *paths), "always_varies": tuple(left)}
        return self.model_copy(update=update)

    def answers(self, request: bytes) -> bool:
        """Return whether this is the answer to `request`."""
        return self.request_sha256 == _digest(request)

    def differences(self, output: str, *, tolerance: float = _TOLERANCE) -> list[Difference]:
        """Return the unexpected parts of `output`; `tolerance` is the relative one of numbers."""
        if output == self.output or "$" in self.varies:
            return []
        if self.output is None:
            same = _digest(_in_order(output, self.any_order)) == self.output_sha256
            return [] if same else [Difference("$", "(long or binary)", output)]
        if not (is_json(self.output) and is_json(output)):
            same = _equal(self.output, output, tolerance)
            return [] if same else [Difference("$", self.output, output)]
        both = json.loads(self.output), json.loads(output)
        return list(self._compared(*both, "$", tolerance))

    def check(
        self,
        output: str,
        workflow: Workflow,
        payload: str = "payload.json",
        failure: ChironError | None = None,
    ) -> None:
        """Raise ``wrong-output`` with task, path and both values if `output` is not as expected.

        `payload` names the request in messages. `failure` is the error of a workflow that failed,
        and `output` its text. Raises `failure` unless the workflow is expected to fail.
        """
        if failure is not None and not self.fails:
            raise failure
        for each in self.differences(output):
            task = _task_at(workflow, each.path)
            raise ChironError(
                "wrong-output",
                f"task {shown(task)} answered {_brief(each.answered)} and not "
                f"{_brief(each.expected)} as its function does alone, to {payload}: functions "
                "that share a process or a wrap disturb each other (isolate in constraints.json "
                f"keeps them apart), or it may vary (no_check there takes {json.dumps(each.path)}, "
                "or --no-check)",
                path=each.path,
                functions=[task],
                status=500,
            )

    def constant(self, outputs: Sequence[str]) -> list[tuple[str, Any]]:
        """Return the paths of `always_varies` at which all `outputs` agree, with their value."""
        moved = {_INDEX.sub("[*]", path) for path in _differing(outputs[0], outputs[1:], _FINE)}
        return [
            (path, _value_at(outputs[0], path))
            for path in self.always_varies
            if not any(
                _is_in(_INDEX.sub("[*]", path), each) or _is_in(each, _INDEX.sub("[*]", path))
                for each in moved
            )
        ]

    def check_varying(
        self,
        outputs: Sequence[str],
        workflow: Workflow,
        suspects: Callable[[str], Sequence[str]],
        payload: str,
    ) -> None:
        """Raise ``constant-output``, with `suspects` of the task, if a varying part is constant."""
        for path, value in self.constant(outputs):
            task = _task_at(workflow, path)
            raise ChironError(
                "constant-output",
                f"task {shown(task)} answered {_brief(value)} in all {len(outputs)} answers to "
                f"{payload}, and something else in each run of the functions alone: one of the "
                f"functions {', '.join(suspects(task))} may seed random numbers, or be forked with "
                "a state that each of its processes then has (isolate in constraints.json keeps "
                f"functions apart), or it may be the same (no_check there takes {json.dumps(path)},"
                " or --no-check)",
                path=path,
                functions=[task],
                status=500,
            )

    def _compared(self, one: Any, other: Any, path: str, tolerance: float) -> Iterator[Difference]:
        if _listed(path, self.varies) or _equal(one, other, tolerance):
            return
        if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
            for key, value in one.items():
                yield from self._compared(value, other[key], path + _step(key), tolerance)
        elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            if one != other and Counter(map(_canonical, one)) == Counter(map(_canonical, other)):
                if not _listed(path, self.any_order):
                    yield Difference(path, one, other, reordered=True)
                return
            for index, (value, its) in enumerate(zip(one, other, strict=True)):
                yield from self._compared(value, its, f"{path}[{index}]", tolerance)
        else:
            yield Difference(path, one, other)


def failure_text(error: str, cause: str) -> str:
    """Return the substitute for the output of a workflow that a Fail state ended."""
    return json.dumps({"error": error, "cause": cause})


def _always_differing(outputs: Sequence[str]) -> tuple[str, ...]:
    """Return the paths at which all `outputs` differ pairwise; empty for fewer than three."""
    if len(outputs) < _FEWEST:
        return ()
    pairs = combinations(outputs, 2)
    differing = (_differing(one, [other], _TOLERANCE) for one, other in pairs)
    common = set[str].intersection(*differing)
    return tuple(sorted(set(_general(common))))


def _differing(one: str, others: Sequence[str], tolerance: float) -> set[str]:
    """Return the paths at which some of `others` differ from `one` in more than an order."""
    known = ExpectedAnswer.learned(b"", [one])
    found = (each for other in others for each in known.differences(other, tolerance=tolerance))
    return {each.path for each in found if not each.reordered}


def _is_in(path: str, other: str) -> bool:
    """Return whether `path` is `other`, or leads to a part of its value."""
    return path == other or path.startswith((f"{other}.", f"{other}["))


def _value_at(output: str, path: str) -> Any:
    """Return the value at `path`; ``[*]`` selects the first item."""
    if path == "$":
        return output
    value = json.loads(output)
    for name, quoted, index in _STEP.findall(path[1:]):
        if index:
            value = value[0 if index == "*" else int(index)]
        else:
            value = value[json.loads(quoted) if quoted else name]
    return value


def _step(key: str) -> str:
    return f".{key}" if _PLAIN_KEY.fullmatch(key) else f"[{json.dumps(key)}]"


def _in_order(output: str, any_order: Sequence[str]) -> bytes:
    """Return the bytes of `output` with its lists at `any_order`, right below the top, sorted.

    Without such lists, the bytes are those of `output`.
    """
    if not any_order or not is_json(output):
        return bytes_of(output)
    value = json.loads(output)
    for key in value if isinstance(value, dict) else ():
        if "$" + _step(key) in any_order and isinstance(value[key], list):
            value[key].sort(key=_canonical)
    return _canonical(value).encode()


def _equal(one: Any, other: Any, tolerance: float) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=tolerance)
    if isinstance(one, str) and isinstance(other, str):
        named = "/images/" in one
        return one == other or (named and _IMAGE.sub("", one) == _IMAGE.sub("", other))
    return type(one) is type(other) and not isinstance(one, dict | list) and one == other


def _listed(path: str, patterns: Sequence[str]) -> bool:
    """Return whether `patterns` contain the path, as it is or with all its indices as ``[*]``."""
    return any(path == pattern or _INDEX.sub("[*]", path) == pattern for pattern in patterns)


def _general(paths: set[str]) -> Iterator[str]:
    """Yield `paths`; a path that several items of a list share is yielded with ``[*]`` as index."""
    count = Counter(_INDEX.sub("[*]", path) for path in paths)
    for path in paths:
        general = _INDEX.sub("[*]", path)
        yield general if count[general] > 1 else path


def _task_at(workflow: Workflow, path: str) -> str:
    """Return the task that produced the part of the workflow's answer at `path`."""
    output = workflow.output
    if isinstance(output, tuple):
        index = re.match(r"\$\[(\d+)\]", path)
        return output[int(index[1])] if index else ", ".join(output)
    return output or workflow.name


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _brief(value: Any) -> str:
    return shown(value if isinstance(value, str) else json.dumps(value))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
