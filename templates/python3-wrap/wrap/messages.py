"""What processes and wraps say to each other: a job (tasks and their inputs) and its results.

The same frames cross the socket to a further process and the HTTP body to a remote wrap. Texts
travel as UTF-8 frames of their own, never inside JSON and never as pickles.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, NamedTuple

from wrap.errors import TaskError
from wrap.frames import Frame, Unsent, unsent
from wrap.probe import Tick


class Watch(NamedTuple):
    """What is to be told of handlers beside their answers.

    Attributes
    ----------
    traced
        When they ran, and for how long they had no core.
    probed
        Also the ticks of the probe.
    cpu_probed
        Also how fast their core was: what the CPU-speed probe took right before and after.
    """

    traced: bool = False
    probed: bool = False
    cpu_probed: bool = False


#: As usual.
UNWATCHED = Watch()
#: What jobs are numbered with: another server's begin elsewhere.
_NUMBERS = count(int.from_bytes(os.urandom(7), "big"))


@dataclass(frozen=True)
class Job:
    """Tasks of one stage with their inputs; tasks that share an input share its text.

    The results of a job, and of its parts, say its number: no other is taken for one of them.
    `execution` is what the lines that are printed meanwhile are marked with; empty for nothing.
    """

    stage: int
    inputs: dict[int, str]
    process: int = 0
    watch: Watch = UNWATCHED
    number: int = field(default_factory=partial(next, _NUMBERS))
    execution: str = ""

    def frames(self) -> list[Unsent]:
        """A header, then every distinct input once."""
        texts: list[str] = []
        index_of: dict[int, int] = {}
        tasks = []
        for task, text in self.inputs.items():
            if id(text) not in index_of:
                index_of[id(text)] = len(texts)
                texts.append(text)
            tasks.append((task, index_of[id(text)]))
        header = {
            "stage": self.stage,
            "process": self.process,
            "watch": self.watch,
            "number": self.number,
            "execution": self.execution,
            "tasks": tasks,
            "texts": len(texts),
        }
        return [json.dumps(header), *map(unsent, texts)]

    @classmethod
    def read(cls, frames: Iterator[Frame]) -> Job | None:
        """The next job of a stream of frames; None at its end, or where it breaks off."""
        try:
            header = json.loads(str(next(frames), "utf-8"))
            texts = [str(next(frames), "utf-8") for _ in range(header["texts"])]
        except StopIteration:
            return None
        inputs = {int(task): texts[index] for task, index in header["tasks"]}
        watch = Watch(*header["watch"])
        stage, process, number = (int(header[name]) for name in ("stage", "process", "number"))
        return cls(stage, inputs, process, watch, number, str(header["execution"]))

    def part(self, tasks: Iterable[int], process: int = 0) -> Job:
        """The job of some of the tasks, for process number `process`."""
        inputs = {task: self.inputs[task] for task in tasks}
        return Job(self.stage, inputs, process, self.watch, self.number, self.execution)


@dataclass
class Result:
    """How one task of a job went: its output, or its error.

    Times are in seconds of the monotonic clock.

    `asked` is when its process was asked for and `ready` when that process had its job; both are
    None in the main process. `delayed` is for how many seconds the handler's thread had no core,
    `cpu` the CPU time of its process and of those that it started and that ended, `ticks` are those
    of the probe, and `cpu_probe` is what the CPU-speed probe took right before and right after it;
    where these were asked for.
    """

    job: int
    task: int
    function: str
    wrap: str
    process: int
    started: float
    ended: float
    output: str | None = None
    error: dict[str, Any] | None = None
    asked: float | None = None
    ready: float | None = None
    delayed: float | None = None
    cpu: float | None = None
    ticks: list[Tick] | None = None
    cpu_probe: tuple[float, float] | None = None

    def frames(self) -> list[Unsent]:
        """A header and the output (empty after an error)."""
        header = {name: value for name, value in vars(self).items() if value is not None}
        text = header.pop("output", "")
        return [json.dumps(header), unsent(text)]

    @classmethod
    def read(cls, frames: Sequence[Frame]) -> list[Result]:
        """The results of a list of frames, two to each."""
        results = []
        for header, text in zip(frames[::2], frames[1::2], strict=True):
            result = cls(**json.loads(str(header, "utf-8")))
            result.output = str(text, "utf-8") if result.error is None else None
            results.append(result)
        return results

    def text(self) -> str:
        """The output. Raises TaskError where the task failed."""
        if self.error is not None:
            raise TaskError.from_dict(self.error, status=500)
        return self.output or ""

    def shifted(self, seconds: float) -> None:
        """Move all its times, from another machine's clock to this one's."""
        self.started += seconds
        self.ended += seconds
        self.asked = None if self.asked is None else self.asked + seconds
        self.ready = None if self.ready is None else self.ready + seconds


def outputs(results: Iterable[Result]) -> Mapping[int, str]:
    """Task -> output. Raises TaskError for the first that failed."""
    return {result.task: result.text() for result in results}
