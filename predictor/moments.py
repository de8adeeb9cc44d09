"""What functions do besides at moments of their runs: give something, or await it.

What is given or awaited is a task beside the one that does so, right behind it. Nothing runs such a
task. It is started with the one beside it, which ends it when it gives that, and whatever awaits it
waits for it. What is awaited ends when it is started once more, and the one beside it goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from chiron.predictor.simulator import Work, WorkKind
from chiron.workflow.model import giver_of, output_name
from chiron.workflow.profile import FunctionProfile

#: Between a task, or a function, and what it gives or awaits. No function has a space in its name.
_GIVES, _AWAITS = " emits ", " awaits "
#: The functions of what is given or awaited and has no size, and what these do: nothing.
GIVEN, AWAITED = f"a task{_GIVES}", f"a task{_AWAITS}"
BESIDE: dict[str, Work] = {GIVEN: (("emitted", 0.0),), AWAITED: (("awaited", 0.0),)}


class Moment(NamedTuple):
    """When the part `after` of its latency has passed, a function does something for so long.

    What it gives or awaits is the task that is so many places behind its own.
    """

    after: float
    kind: WorkKind
    value: float


class Flow(NamedTuple):
    """What a task awaits has come when all of `awaits`, tasks or what they give, have ended."""

    awaited: str
    awaits: tuple[str, ...]


@dataclass
class Beside:
    """What a task does besides, and what it gives and awaits: tasks by name, with functions."""

    task: str
    functions: dict[str, str] = field(default_factory=dict)
    moments: list[Moment] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)

    def give(self, what: str, after: float, function: str = GIVEN) -> None:
        """Give something when the part `after` of its latency has passed."""
        self._add(given_by(self.task, what), function, "emit", after)

    def wait(self, what: str, after: float, awaits: Iterable[str]) -> None:
        """Await that all of `awaits` have ended."""
        name = f"{self.task}{_AWAITS}{what}"
        self._add(name, AWAITED, "await", after)
        self.flows.append(Flow(name, tuple(awaits)))

    def spend(self, kind: WorkKind, after: float, ms: float) -> None:
        """Do something for so long."""
        if ms:
            self.moments.append(Moment(after, kind, ms))

    def _add(self, name: str, function: str, kind: WorkKind, after: float) -> None:
        self.functions[name] = function
        self.moments.append(Moment(after, kind, len(self.functions)))


def given_by(name: str, what: str) -> str:
    """What stands for what a task of that name gives, or a function."""
    return f"{name}{_GIVES}{what}"


def stands_for(output: str) -> str:
    """The task that ends when an output is there."""
    task = giver_of(output)
    return output if task == output else given_by(task, output_name(output))


def runners(functions: Sequence[str]) -> list[int]:
    """For each task of a process the place of what runs it, by their functions."""
    places = list[int]()
    for place, function in enumerate(functions):
        is_beside = _GIVES in function or _AWAITS in function
        places.append(places[-1] if is_beside else place)
    return places


def work_with(function: FunctionProfile, parts: Sequence[Work], moments: Iterable[Moment]) -> Work:
    """What a function does with some moments, which are in order where they are at one time.

    Args:
        parts: what it does in each of its periods: one part of that kind, and its helpers.
    """
    left = sorted(moments, key=lambda moment: moment.after)
    return (*_interrupted(function, parts, left), *((kind, value) for _, kind, value in left))


def _interrupted(
    function: FunctionProfile, parts: Sequence[Work], moments: list[Moment]
) -> Iterator[tuple[WorkKind, float]]:
    """The parts, up to the moments that are within them; those are taken out."""
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
