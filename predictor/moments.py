"""Additional work of functions at moments of their runs: emitting an output, or awaiting a task.

An emitted or awaited object is a task right behind the function's task, and no thread runs it. It
starts with the function's task, which ends it by emitting. Tasks that await the object wait for its
end. An awaited task ends at its second start; then the function continues.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from chiron.predictor.simulator import Work, WorkKind
from chiron.workflow.model import giver_of, output_name
from chiron.workflow.profile import FunctionProfile

#: Separators between a task or function and its output or await. No function's name has a space.
_GIVES, _AWAITS = " emits ", " awaits "
#: The functions of outputs and awaits without a size, and their work: none.
GIVEN, AWAITED = f"a task{_GIVES}", f"a task{_AWAITS}"
BESIDE: dict[str, Work] = {GIVEN: (("emitted", 0.0),), AWAITED: (("awaited", 0.0),)}


class Moment(NamedTuple):
    """After the part `after` of its latency, a function does additional work of a kind.

    `value` is a time, or the offset from its own task to the output's or await's task.
    """

    after: float
    kind: WorkKind
    value: float


class Flow(NamedTuple):
    """An awaited task ends when all of `awaits`, tasks or outputs, have ended."""

    awaited: str
    awaits: tuple[str, ...]


@dataclass
class Beside:
    """The additional work of a task, with its outputs and awaits: tasks by name, with functions."""

    task: str
    functions: dict[str, str] = field(default_factory=dict)
    moments: list[Moment] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)

    def give(self, what: str, after: float, function: str = GIVEN) -> None:
        """Emit something after the part `after` of the task's latency."""
        self._add(given_by(self.task, what), function, "emit", after)

    def wait(self, what: str, after: float, awaits: Iterable[str]) -> None:
        """Await the ends of all of `awaits`."""
        name = f"{self.task}{_AWAITS}{what}"
        self._add(name, AWAITED, "await", after)
        self.flows.append(Flow(name, tuple(awaits)))

    def spend(self, kind: WorkKind, after: float, ms: float) -> None:
        """Add work of that duration."""
        if ms:
            self.moments.append(Moment(after, kind, ms))

    def _add(self, name: str, function: str, kind: WorkKind, after: float) -> None:
        self.functions[name] = function
        self.moments.append(Moment(after, kind, len(self.functions)))


def given_by(name: str, what: str) -> str:
    """Return the name of the task or function of an output of `name`."""
    return f"{name}{_GIVES}{what}"


def stands_for(output: str) -> str:
    """Return the task that ends when an output exists."""
    task = giver_of(output)
    return output if task == output else given_by(task, output_name(output))


def runners(functions: Sequence[str]) -> list[int]:
    """Return for each task of a process, by its function, the index of the task that runs it."""
    places = list[int]()
    for place, function in enumerate(functions):
        is_beside = _GIVES in function or _AWAITS in function
        places.append(places[-1] if is_beside else place)
    return places


def work_with(function: FunctionProfile, parts: Sequence[Work], moments: Iterable[Moment]) -> Work:
    """Return the work of a function with some moments, in order if they coincide.

    Args:
        parts: its work in each of its periods: one step of that kind, and its helpers.
    """
    left = sorted(moments, key=lambda moment: moment.after)
    return (*_interrupted(function, parts, left), *((kind, value) for _, kind, value in left))


def _interrupted(
    function: FunctionProfile, parts: Sequence[Work], moments: list[Moment]
) -> Iterator[tuple[WorkKind, float]]:
    """Yield the parts, interrupted by the moments within them, which are removed from `moments`."""
    for period, work in zip(function.periods, parts, strict=True):
        for kind, ms in work:
            done = 0.0
            while kind == period.kind and moments and period.duration_ms:
                after_ms = moments[0].after * function.latency_ms
                share = (after_ms - period.start_ms) / period.duration_ms
                if share >= 1.0:
                    break
                yield kind, max(0.0, share - done) * ms
                yield moments[0].kind, moments.pop(0).value
                done = max(done, share)
            yield kind, (1.0 - done) * ms
